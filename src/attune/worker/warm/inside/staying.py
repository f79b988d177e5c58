"""A process that stays: it runs one execution of its action after the other, each as if it were the first."""

# ruff: noqa: PTH116, PTH118 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import gc
import marshal
import os
import sys
from types import CodeType, ModuleType
from typing import Any

from attune.worker.warm.inside import ending, prctl, script
from attune.worker.warm.inside.child import Interpreter, set_environment
from attune.worker.warm.inside.condition import Condition
from attune.worker.warm.inside.link import Link
from attune.worker.warm.inside.state import State


def main(interpreter: Interpreter, request: dict[str, Any], link: Link) -> None:
    """Until the worker lets go of the link, or a run leaves something behind: that one ends the process, plainly."""
    prctl.end_with_parent()
    path = request["arguments"][0]
    fit = prctl.take_in_orphans() and script.source_of(path) is not None
    # Without the mark of a run: it belongs to many.
    interpreter.title.write([*interpreter.words, *request["arguments"]], {})
    if not fit or script.shadowed(path, interpreter.loaded):
        link.send("unfit")
        return
    Stayer(interpreter, link, request["folder"]).serve()


class Stayer:
    def __init__(self, interpreter: Interpreter, link: Link, pack: str) -> None:
        self._interpreter = interpreter
        self._link = link
        self._pack = os.path.join(os.path.realpath(pack), "")
        self._code: CodeType | None = None
        self._files: dict[str, int] = {}
        self._settled = 0
        self._state = State()
        self._condition = Condition(link.fileno())

    def serve(self) -> None:
        while True:
            message = self._link.receive()
            if message is None:
                return
            if self._is_stale():
                self._link.send("stale")
                return
            body, descriptors = message
            request = marshal.loads(body)  # noqa: S302 - from the worker
            self._link.send(f"done {self._run(request, descriptors[0])}")

    def _run(self, request: dict[str, Any], stdin: int) -> int:
        """Its exit code, if nothing is left of it; otherwise the process ends here with that code."""
        os.dup2(stdin, 0)
        os.close(stdin)
        set_environment(self._interpreter, request["environment"])
        os.chdir(request["folder"])
        self._state.reset()
        main = script.set_up(request["arguments"], self._interpreter.words)
        error = self._do(main, request["arguments"][0])
        if isinstance(error, KeyboardInterrupt) or self._state.has_work_at_exit():
            ending.raise_out(error)
        code = ending.last_words(error)
        error = None
        ending.empty(main)
        self._settle_modules()
        if not self._condition.is_unchanged():
            raise SystemExit(code)
        return code

    def _settle_modules(self) -> None:
        """What a run imported stays for good: the look for circles need not go through it again. Changes are noticed."""
        if len(sys.modules) == self._settled:
            return
        self._settled = len(sys.modules)
        gc.freeze()
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and os.path.realpath(file).startswith(self._pack):
                self._files.setdefault(file, _changed(file))

    def _do(self, main: ModuleType, path: str) -> BaseException | None:
        try:
            if self._code is None:
                self._code = script.compiled(script.source_of(path) or b"", path)
                self._files[path] = os.stat(path).st_mtime_ns
            exec(self._code, main.__dict__)  # noqa: S102 - the action itself
        except BaseException as error:  # noqa: BLE001 - whatever ends the script, exits included
            return error
        return None

    def _is_stale(self) -> bool:
        """Whether a file of the pack that was loaded has changed since."""
        return any(_changed(file) != since for file, since in self._files.items())


def _changed(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return -1
