"""From a fork of the warm interpreter to a process as a fresh start would have made it."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

from attune.worker.warm.inside import ending, script
from attune.worker.warm.inside.title import Title


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
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    body = descriptors[3]
    request: dict[str, Any] = json.loads(os.pread(body, os.fstat(body).st_size, 0))
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
    for name, value in interpreter.added.items():
        if environment.get(name) == given.get(name):
            environment[name] = value
    now = os.environ
    for name in [name for name in now if name not in environment]:
        del now[name]
    for name, value in environment.items():
        if now.get(name) != value:
            now[name] = value


def show(interpreter: Interpreter, request: dict[str, Any]) -> None:
    marks = {name: request["environment"][name] for name in request["marks"]}
    interpreter.title.write([*interpreter.words, *request["arguments"]], marks)


def become(interpreter: Interpreter, request: dict[str, Any]) -> None:
    """Run the request's script to the end of this process."""
    arguments = request["arguments"]
    set_environment(interpreter, request["environment"])
    show(interpreter, request)
    path = arguments[0]
    source = script.source_of(path)
    if source is None or script.shadowed(path, interpreter.loaded):
        script.start_anew(interpreter.words, arguments)
    main = script.set_up(arguments, interpreter.words)
    ending.end_by(script.run(source, path, main), main, interpreter.last_module)
