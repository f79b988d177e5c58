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
from attune.worker.warm.inside.circles import Circles
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
    Stayer(interpreter, link, request["arguments"], request["folder"]).serve()


class Stayer:
    """Between two runs it makes itself ready, while the worker goes on with what the run before has told."""

    def __init__(
        self, interpreter: Interpreter, link: Link, arguments: list[str], folder: str
    ) -> None:
        self._interpreter = interpreter
        self._link = link
        self._arguments = arguments
        self._folder = folder
        self._pack = os.path.join(os.path.realpath(folder), "")
        self._code: CodeType | None = None
        self._files: dict[str, int] = {}
        self._settled = 0
        self._state = State()
        self._condition = Condition(link.fileno())
        self._circles = Circles()
        self._main = ModuleType("__main__")

    def serve(self) -> None:
        while self._makes_ready():
            message = self._link.receive()
            if message is None:
                return
            if self._is_stale():
                break
            self._link.send(f"done {self._run(*message)}")
        self._link.send("stale")

    def _makes_ready(self) -> bool:
        """Whether it may run once more. Nothing of a script is called here any more."""
        try:
            if not self._condition.is_unchanged():
                return False
            self._state.renew()
            self._main = script.set_up(self._arguments, self._interpreter.words)
            self._circles.settle()
        except Exception:  # noqa: BLE001 - whatever a script has broken, a fresh process has whole
            return False
        return True

    def _run(self, message: bytes, descriptors: list[int]) -> int:
        """Its exit code, if nothing is left of it; otherwise the process ends here with that code."""
        environment, content = marshal.loads(message)  # noqa: S302 - from the worker
        set_environment(self._interpreter, environment)
        script.heed(environment)
        os.chdir(self._folder)
        if descriptors:
            self._state.give_input_from(descriptors[0])
        else:
            self._state.give_input(content)
        error = self._do(self._arguments[0])
        if isinstance(error, KeyboardInterrupt) or self._state.has_work_at_exit():
            ending.raise_out(error)
        code = ending.last_words(error)
        error = None
        if not self._is_clean():
            raise SystemExit(code)
        return code

    def _is_clean(self) -> bool:
        """Let go of all that the run had, and look whether anything goes on: so much of its end is the run's own."""
        self._circles.empty(self._main)
        self._settle_modules()
        if not self._condition.is_alone():
            return False
        try:
            self._state.reset()
        except Exception:  # noqa: BLE001 - see above
            return False
        return self._condition.is_whole()

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

    def _do(self, path: str) -> BaseException | None:
        try:
            if self._code is None:
                self._code = script.compiled(script.source_of(path) or b"", path)
                self._files[path] = os.stat(path).st_mtime_ns
            exec(self._code, self._main.__dict__)  # noqa: S102 - the action itself
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
