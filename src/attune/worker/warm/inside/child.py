"""From a fork of the warm interpreter to a process as a fresh start would have made it."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import marshal
import os
import sys
from types import CodeType
from typing import Any

from attune.worker.warm.inside import ending, script
from attune.worker.warm.inside.title import Title

_ENCODING, _ERRORS = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()


class Interpreter:
    """What the warm interpreter is before anything runs in it."""

    def __init__(self, words: list[str], first: dict[str, Any], at_start: frozenset[str]) -> None:
        """`first` tells what it was started with; what it finds beyond that its own start has set."""
        self.words = words
        self.title = Title(first["room"])
        self.given = given = first["environment"]
        self.added = {name: value for name, value in os.environ.items() if given.get(name) != value}
        self.loaded = frozenset(name.partition(".")[0] for name in sys.modules) - at_start
        self.last_module = next(reversed(sys.modules))


def prepare(descriptors: list[int]) -> dict[str, Any]:
    """Take the streams and read the request, which nobody but this process may keep in its memory.

    Raise OSError where a fresh start would fail, too.
    """
    os.setsid()
    # Not by `signal`, which would look for names of what it is given and returns.
    _signal.set_wakeup_fd(-1)
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    body = descriptors[3]
    request: dict[str, Any] = marshal.loads(  # noqa: S302 - from the worker
        os.pread(body, os.fstat(body).st_size, 0)
    )
    for descriptor in descriptors[:4]:
        os.close(descriptor)
    os.chdir(request["folder"])
    if request["rlimits"]:
        _limit(request["rlimits"])
    return request


def _limit(limits: list[list[int]]) -> None:
    import resource  # noqa: PLC0415 - few runs need it, and none pays for what others need

    for kind, soft, hard in limits:
        resource.setrlimit(kind, (soft, hard))


def set_environment(interpreter: Interpreter, environment: dict[str, str]) -> None:
    """Exactly what a fresh start would have found there, with what its own start adds."""
    given = interpreter.given
    for variable, own in interpreter.added.items():
        if environment.get(variable) == given.get(variable):
            environment[variable] = own
    wanted = {
        name.encode(_ENCODING, _ERRORS): value.encode(_ENCODING, _ERRORS)
        for name, value in environment.items()
    }
    # Past the methods of `os.environ`: in a fork, each that is called costs copies of the memory around it.
    known: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
    for name in [name for name in known if name not in wanted]:
        os.unsetenv(name)
    for name, value in wanted.items():
        if known.get(name) != value:
            os.putenv(name, value)
    known.clear()
    known.update(wanted)


def show(interpreter: Interpreter, request: dict[str, Any]) -> None:
    marks = {name: request["environment"][name] for name in request["marks"]}
    interpreter.title.write([*interpreter.words, *request["arguments"]], marks)


def become(interpreter: Interpreter, request: dict[str, Any], code: CodeType | None) -> None:
    """Run the request's script, from its `code` if that is known, to the end of this process."""
    arguments = request["arguments"]
    set_environment(interpreter, request["environment"])
    show(interpreter, request)
    path = arguments[0]
    source = code or script.source_of(path)
    if source is None or script.shadowed(path, interpreter.loaded):
        script.start_anew(interpreter.words, arguments)
    script.heed(request["environment"])
    main = script.set_up(arguments, interpreter.words)
    ending.end_by(script.run(source, path, main), main, interpreter.last_module)
