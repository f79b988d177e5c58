"""The warm interpreter: it does nothing but fork, and it keeps each body until the worker has no use for its number."""

# ruff: noqa: PTH208 - `pathlib` costs more than what it is used for here

from __future__ import annotations

import gc
import json
import marshal
import os
import select
import signal
import sys
from types import CodeType
from typing import Any

from attune.worker.warm.inside import prctl, staying
from attune.worker.warm.inside.child import Interpreter, become, prepare
from attune.worker.warm.inside.codes import Codes
from attune.worker.warm.inside.link import Link

_SIGNALLED = 128
# What most actions import: nothing that draws a secret, or notes the time, when it is loaded, or that has to be mended
# after a fork, as `threading` has.
_USUAL = ("datetime", "json", "pathlib", "re")


class Server:
    def __init__(self, link: Link) -> None:
        self._link = link
        self._woken, self._wakes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._wakes)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        # Their numbers in the worker's requests, by pid.
        self._running: dict[int, int] = {}
        self._unwanted: set[int] = set()
        self._codes = Codes()
        # That of the script for which it forked last.
        self.code: CodeType | None = None

    def serve(self) -> tuple[dict[str, Any], list[int]] | None:
        """Return in each child what it is to do, and None in the server itself when the worker is gone."""
        poll = select.poll()
        poll.register(self._link.fileno(), select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if self._woken in ready:
                self._tell_ends()
            if self._link.fileno() in ready:
                message = self._link.receive()
                if message is None:
                    return None
                task = self._answer(*message)
                if task is not None:
                    return task

    def _answer(
        self, message: bytes, descriptors: list[int]
    ) -> tuple[dict[str, Any], list[int]] | None:
        word, number, path = message.split(b" ", 2)
        if word == b"reap":
            self._discharge(int(number))
            return None
        self.code = self._codes.get(os.fsdecode(path)) if path else None
        pid = os.fork()
        if pid == 0:
            return self._leave(int(number), descriptors)
        self._running[pid] = int(number)
        for descriptor in descriptors:
            os.close(descriptor)
        return None

    def _leave(self, number: int, descriptors: list[int]) -> tuple[dict[str, Any], list[int]]:
        """The child tells of itself. As it holds the link until then, the worker sees no end of it before."""
        try:
            request = prepare(descriptors)
        except OSError as error:
            self._link.send(f"refused {number} {error.strerror}")
            os._exit(1)
        self._link.send(f"started {number} {os.getpid()}")
        self._link.close()
        os.close(self._woken)
        os.close(self._wakes)
        return request, descriptors[4:]

    def _tell_ends(self) -> None:
        """Without reaping: a body keeps its number from becoming another's."""
        try:
            os.read(self._woken, 4096)
        except BlockingIOError:
            return
        for pid in list(self._running):
            end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if end is not None:
                own = end.si_code == os.CLD_EXITED
                code = end.si_status if own else _SIGNALLED + end.si_status
                self._link.send(f"ended {self._running.pop(pid)} {pid} {code}")
                if pid in self._unwanted:
                    self._discharge(pid)

    def _discharge(self, pid: int) -> None:
        if pid in self._running:
            self._unwanted.add(pid)
        else:
            self._unwanted.discard(pid)
            os.waitpid(pid, 0)


def main(descriptor: int, words: list[str], at_start: frozenset[str]) -> None:
    ends_with_worker = prctl.end_with_parent()
    for name in _USUAL:
        __import__(name)
    link = Link(descriptor)
    first = link.receive()
    if first is None:
        return
    server = Server(link)
    _forget_ourselves()
    interpreter = Interpreter(
        words,
        marshal.loads(first[0]),  # noqa: S302 - from the worker
        at_start,
    )
    gc.collect()
    if hasattr(gc, "freeze"):
        gc.freeze()
    threads = len(os.listdir("/proc/self/task"))
    facts = {"threads": threads, "folders": sys.path, "can_stay": ends_with_worker}
    link.send("ready 0 " + json.dumps(facts))
    task = server.serve()
    if task is None:
        os._exit(0)
    request, beside = task
    if beside:
        staying.main(interpreter, request, Link(beside[0]))
    else:
        become(interpreter, request, server.code)


def _forget_ourselves() -> None:
    """A script's own `import attune` finds the package that is installed for it, if there is one."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "attune"]:
        del sys.modules[name]
