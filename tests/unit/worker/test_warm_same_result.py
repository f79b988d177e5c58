"""A Python action behaves the same in a process of its own, forked from a warm interpreter, and in one that stays."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from attune.kernel.statuses import ExecutionStatus
from attune.worker.model import Outcome
from tests.unit.worker.scripts import Mode, fields_of, run_script
from tests.unit.worker.worlds import World


class Script(NamedTuple):
    """What it prints is enough of it to know that it got there."""

    text: str
    exit_code: int = 0
    prints: str = ""
    complains: str = ""
    fields: dict[str, Any] = {}


SCRIPTS = {
    "nothing": Script(""),
    "exit code": Script("import sys; print('a'); sys.exit(7)", 7, "a"),
    "exit code below zero": Script("import sys; sys.exit(-1)", 255),
    "exit code too large": Script("import sys; sys.exit(2**70)", 255),
    "exit with a text": Script("import sys; sys.exit('no äöü')", 1, "", "no äöü"),
    "exit with an object": Script("raise SystemExit(['a'])", 1, "", "['a']"),
    "quit": Script("quit(3)", 3),
    "exception": Script(
        "def f():\n    raise ValueError('bad')\nf()\n", 1, "", 'line 3, in <module>\n    f()'
    ),
    "exception with a cause": Script(
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e\n",
        1,
        "",
        "direct cause",
    ),
    "exception group": Script(
        "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])", 1, "", "| TypeError: 2"
    ),
    "misspelt name": Script("number = 1\nprint(numbr)\n", 1, "", "Did you mean: 'number'"),
    "syntax error": Script("print('a')\nif x\n", 1, "", "SyntaxError"),
    "recursion": Script(
        "def f(): f()\ntry:\n    f()\nexcept RecursionError as error: print(error)\n", 0, "exceeded"
    ),
    "assertion in a function": Script("class A:\n  def m(self): assert 0, 'x'\nA().m()", 1, "", "x"),
    "own hook for exceptions": Script(
        "import sys, traceback\n"
        "def hook(kind, error, trace):\n"
        "    print('hook', len(traceback.extract_tb(trace)), kind.__name__)\n"
        "sys.excepthook = hook\n"
        "raise ValueError\n",
        1,
        "hook 1 ValueError",
    ),
    "interrupted": Script("raise KeyboardInterrupt", 130, "", "KeyboardInterrupt"),
    "killed": Script("import os; print('a'); os.kill(os.getpid(), 9)", 137, "a"),
    "terminated": Script("import os; os.kill(os.getpid(), 15)", 143),
    "segmentation fault": Script("import os; os.kill(os.getpid(), 11)", 139),
    "aborted": Script("import os; os.abort()", 134),
    "broken pipe": Script(
        "import os\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')\n", 1, "", "BrokenPipeError"
    ),
    "hard exit": Script("import os; print('a'); os._exit(4)", 4, "a"),
    "own handler of a signal": Script(
        "import os, signal\nsignal.signal(15, lambda *a: print('TERM'))\nos.kill(os.getpid(), 15)\n",
        0,
        "TERM",
    ),
    "signals as usual": Script(
        "import signal\n"
        "print([(s.name, str(signal.getsignal(s))[:30]) for s in signal.Signals\n"
        "       if signal.getsignal(s) is not signal.SIG_DFL])\n"
        "print(signal.pthread_sigmask(0, []))\n",
        0,
        "SIGPIPE",
    ),
    "threads": Script(
        "import threading, time\n"
        "def late():\n    time.sleep(0.05)\n    print('late')\n"
        "threading.Thread(target=late).start()\nprint('main')\n",
        0,
        "main\nlate",
    ),
    "daemon threads": Script(
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
        "print('main')\n",
        0,
        "main",
    ),
    "exception in a thread": Script(
        "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start()\nt.join()\n",
        0,
        "",
        "ZeroDivisionError",
    ),
    "a pool of threads": Script(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "print(list(ThreadPoolExecutor(3).map(str, range(4))))\n",
        0,
        "'3'",
    ),
    "work at exit": Script(
        "import atexit\natexit.register(print, 'one')\natexit.register(print, 'two')\nprint('main')\n",
        0,
        "main\ntwo\none",
    ),
    "work at exit after an exception": Script(
        "import atexit\natexit.register(print, 'last')\n1 / 0\n", 1, "last", "ZeroDivisionError"
    ),
    "last words of an object": Script(
        "class A:\n    def __del__(self): print('gone')\na = A()\nb = [A()]\nb.append(b)\n",
        0,
        "gone\ngone",
    ),
    "last words of what outlived many others": Script(
        "import gc\nclass A:\n    def __del__(self): print('gone')\na = A()\nb = [A()]\nb.append(b)\n"
        "gc.collect()\nmany = [[number] for number in range(5000)]\n",
        0,
        "gone\ngone",
    ),
    "a file left open": Script(
        "f = open('left.txt', 'w')\nf.write('kept')\nclass H: pass\nh = H(); h.h = h; h.f = f\n"
    ),
    "subprocess": Script(
        "import subprocess, sys\nprint('a')\nsubprocess.run(['echo', 'b'])\n"
        "subprocess.run(['sh', '-c', 'echo c >&2; exit 3'])\nprint('d')\n",
        0,
        "a\nb\nd",
        "c",
    ),
    "system": Script("import os; print(os.system('echo out; exit 2'))", 0, "out\n512"),
    "forked by hand": Script(
        "import os\npid = os.fork()\nif not pid:\n    print('child')\n    os._exit(5)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n",
        0,
        "child\n5",
    ),
    "exec": Script("import os; os.execvp('echo', ['echo', 'other'])", 0, "other"),
    "input": Script("print(input())", 0, '{"text":"äöü"}'),
    "input until the end": Script(
        "import sys\nprint(sys.stdin.read())\nprint(repr(sys.stdin.read()))\n", 0, "''"
    ),
    "input in bytes": Script("import sys; print(sys.stdin.buffer.read())", 0, "\\xc3\\xa4"),
    "input by its descriptor": Script("import os; print(os.read(0, 100))", 0, "\\xc3\\xa4"),
    "input half by half": Script(
        "import os, sys\nprint(repr(sys.stdin.read(3)), os.lseek(0, 0, 1) > 0, sys.stdin.seekable())\n",
        0,
        "True True",
    ),
    "input once too often": Script("input()\ninput()\n", 1, "", "EOFError"),
    "input closed": Script("import sys\nsys.stdin.close()\nprint('on')\n", 0, "on"),
    "descriptor of input closed": Script("import os\nos.close(0)\nprint('on')\n", 0, "on"),
    "output closed": Script("import sys\nprint('a')\nsys.stdout.close()\n", 0, "a"),
    "descriptor of output closed": Script("import os\nprint('a')\nos.close(1)\n", 0, "a"),
    "output redirected": Script(
        "import os, sys\nprint('a')\nos.dup2(2, 1)\nprint('b')\n", 0, "a", "b"
    ),
    "output through a stream of its own": Script(
        "import sys\nsys.stdout = sys.own = open(1, 'w', closefd=False)\nprint('held back')\n", 0, "held back"
    ),
    "output in another wrapping": Script(
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\nprint('wrapped')\n",
        0,
        "wrapped",
    ),
    "output after detaching": Script(
        "import sys\nraw = sys.stdout.detach()\nraw.write(b'raw\\n')\n", 120, "raw"
    ),
    "not UTF-8": Script("import os, sys\nos.write(1, b'a\\xff\\xfeb')\n", 0, "a\ufffd\ufffdb"),
    "half a surrogate pair": Script("print('\\ud800')", 1, "", "UnicodeEncodeError"),
    "unbuffered": Script(
        "import sys\nprint('a', end='')\nprint('b', end='', file=sys.stderr)\n"
        "print(sys.stdout.write_through, sys.stdout.line_buffering, sys.stdout.encoding,\n"
        "      sys.stdout.errors, sys.stderr.errors, sys.stdin.encoding, sys.stdin.errors,\n"
        "      sys.stdout.name, sys.stdin.name, sys.stdout.mode, sys.stdin.isatty(),\n"
        "      sys.stdout.seekable(), sys.stdout.isatty())\n",
        0,
        "aTrue False utf-8",
        "b",
    ),
    "flags": Script("import sys; print(sys.flags, sys.warnoptions, sys._xoptions)", 0, "isolated=0"),
    "names": Script(
        "print(sorted(globals()), __name__, __file__, __spec__, __package__, __doc__)\n"
        "print(type(__loader__), __builtins__)\n",
        0,
        "__main__",
    ),
    "arguments": Script(
        "import sys\nprint(sys.argv, sys.orig_argv, sys.executable, sys.prefix)\nprint(sys.path)\n",
        0,
        "script.py",
    ),
    "command line": Script(
        "print(open('/proc/self/cmdline').read().rstrip('\\0').split('\\0'))", 0, "script.py"
    ),
    "working folder": Script("import os; print(os.getcwd())", 0, "pack"),
    "session": Script(
        "import os\nprint(os.getpid() == os.getsid(0) == os.getpgrp(), oct(os.umask(0)), os.nice(0))\n",
        0,
        "True 0o22",
    ),
    "warnings": Script("import warnings; warnings.warn('old', DeprecationWarning)", 0, "", "old"),
    "frames": Script(
        "import sys\nprint(sys._getframe().f_code.co_filename, sys._getframe().f_code.co_name)\n",
        0,
        "<module>",
    ),
    "pickle": Script(
        "import pickle\nclass P:\n    def __init__(self): self.x = 1\n"
        "print(pickle.loads(pickle.dumps(P())).x)\n",
        0,
        "1",
    ),
    "main is itself": Script("import sys, __main__\nx = 1\nprint(__main__.x, sys.modules['__main__'].x)\n", 0, "1 1"),
    "annotations": Script("x: int = 1\nprint(__annotations__)\n", 0, "{'x': <class 'int'>}"),
    "data class": Script(
        "from dataclasses import dataclass\n@dataclass\nclass D:\n    x: 'int' = 1\nprint(D())\n", 0, "D(x=1)"
    ),
    "typing of names in main": Script(
        "import typing\nclass A:\n    x: 'A'\nprint(typing.get_type_hints(A))\n", 0, "__main__.A"
    ),
    "asyncio": Script(
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    print('ran')\nasyncio.run(f())\n", 0, "ran"
    ),
    "logging": Script(
        "import logging\nlogging.basicConfig(level='INFO')\nlogging.info('told')\n", 0, "", "INFO:root:told"
    ),
    "temporary folder": Script(
        "import tempfile, os\nd = tempfile.TemporaryDirectory()\nprint(os.path.isdir(d.name))\n",
        0,
        "True",
        fields={"env_vars": {"TMPDIR": "/tmp"}},
    ),
    "source in another encoding": Script(
        "# -*- coding: utf-8 -*-\nprint(len('äöü'))\n", 0, "3"
    ),
}  # fmt: skip


def seen(outcome: Outcome) -> dict[str, Any]:
    result = outcome.result
    return {
        "status": outcome.status,
        "exit_code": result.exit_code,
        "stdout": result.stdout,
        "stderr": result.stderr,
        "error": result.error,
    }


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_ends_the_same_in_every_mode(world: World, name: str) -> None:
    script = SCRIPTS[name]
    fields = {"parameters": {"text": "äöü"}, **script.fields}
    outcomes = {mode: seen(await run_script(world, mode, script.text, **fields)) for mode in Mode}
    plain = outcomes[Mode.PLAIN]
    assert plain["exit_code"] == script.exit_code
    assert script.prints in plain["stdout"]
    assert script.complains in plain["stderr"]
    assert outcomes[Mode.ISOLATED] == plain
    assert outcomes[Mode.REUSE] == plain


@pytest.mark.parametrize("name", SCRIPTS)
async def test_a_script_ends_the_same_the_second_time_in_a_process_that_stays(
    world: World, name: str
) -> None:
    script = SCRIPTS[name]
    fields = {"parameters": {"text": "äöü"}, **script.fields}
    first, second = [
        seen(await run_script(world, Mode.REUSE, script.text, **fields)) for _ in range(2)
    ]
    assert first["exit_code"] == script.exit_code
    assert second == first


@pytest.mark.parametrize("mode", Mode)
async def test_a_file_left_open_is_written_to_its_end(world: World, mode: Mode) -> None:
    await run_script(world, mode, SCRIPTS["a file left open"].text)
    assert (world.pack / "left.txt").read_text() == "kept"


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
async def test_processes_of_multiprocessing_find_the_script(
    world: World, mode: Mode, method: str
) -> None:
    text = (
        "import multiprocessing, sys\n"
        "def double(n):\n    return n * 2\n"
        "if __name__ == '__main__':\n"
        "    context = multiprocessing.get_context(sys.stdin.readline().split('\"')[3])\n"
        "    with context.Pool(2) as pool:\n"
        "        print(pool.map(double, [1, 2, 3]))\n"
    )
    outcome = await run_script(
        world, mode, text, parameters={"method": method}, env_vars={"TMPDIR": "/tmp"}
    )
    assert (outcome.result.stdout, outcome.result.stderr) == ("[2, 4, 6]\n", "")


@pytest.mark.parametrize("mode", Mode)
async def test_neighbours_and_the_pack_s_own_modules_are_imported(world: World, mode: Mode) -> None:
    world.file("neighbour.py", "NAME = 'neighbour'\n")
    (world.pack / "lib" / "inner").mkdir(parents=True)
    (world.pack / "lib" / "inner" / "__init__.py").write_text("from .part import NAME\n")
    (world.pack / "lib" / "inner" / "part.py").write_text("NAME = 'part'\n")
    text = (
        "import os, sys\nimport neighbour\n"
        "sys.path.insert(0, os.path.join(os.path.dirname(__file__), '..', 'lib'))\n"
        "import inner\nprint(neighbour.NAME, inner.NAME)\n"
    )
    outcome = await run_script(world, mode, text)
    assert outcome.result.stdout == "neighbour part\n"


@pytest.mark.parametrize("mode", Mode)
async def test_a_neighbour_with_the_name_of_a_library_module_wins(world: World, mode: Mode) -> None:
    world.file("json.py", "NAME = 'mine'\n")
    outcome = await run_script(world, mode, "import json; print(json.NAME)")
    assert outcome.result.stdout == "mine\n"


@pytest.mark.parametrize("mode", Mode)
async def test_any_letters_are_good_for_a_path_and_a_variable(world: World, mode: Mode) -> None:
    name = world.file("größe/скрипт 1.py", "import os, sys; print(sys.argv[0], os.environ['ÄÖ'])")
    fields = fields_of(mode, env_vars={"ÄÖ": "ü \n'\""})
    outcome = await world.run(name, **fields)
    assert outcome.result.stdout == f"{world.pack.resolve()}/actions/{name} ü \n'\"\n"


@pytest.mark.parametrize("mode", Mode)
async def test_a_large_environment_is_delivered_whole(world: World, mode: Mode) -> None:
    variables = {f"V{number}": "x" * 100_000 for number in range(4)}
    text = "import os; print(sum(len(os.environ[f'V{n}']) for n in range(4)))"
    outcome = await run_script(world, mode, text, env_vars=variables)
    assert outcome.result.stdout == "400000\n"


@pytest.mark.parametrize("mode", Mode)
async def test_an_archive_is_run_as_python_runs_it(
    world: World, mode: Mode, tmp_path: Path
) -> None:
    text = (
        "import zipapp, pathlib\npathlib.Path('src').mkdir(exist_ok=True)\n"
        "pathlib.Path('src/__main__.py').write_text('print(\"from the archive\")')\n"
        "zipapp.create_archive('src', 'actions/archive.pyz')\n"
    )
    assert (await run_script(world, Mode.PLAIN, text)).status is ExecutionStatus.COMPLETED
    outcome = await world.run("archive.pyz", **fields_of(mode))
    assert outcome.result.stdout == "from the archive\n"


@pytest.mark.parametrize("mode", Mode)
async def test_the_environment_is_the_run_s_and_nothing_else(world: World, mode: Mode) -> None:
    text = "import os; print(sorted(os.environ)); os.system('env | cut -d= -f1 | sort')"
    outcome = await run_script(world, mode, text, env_vars={"MINE": "1"}, api_token="secret")
    own, inherited = outcome.result.stdout.split("\n", 1)
    expected = {"ATTUNE_ACTION", "ATTUNE_API_TOKEN", "ATTUNE_EXEC_ID", "MINE", "PATH"}
    usual = ("HOME", "LANG", "LC_", "PATH", "PWD", "PYTHONHASHSEED", "SHLVL", "TMPDIR", "TZ", "_")
    names = set(inherited.split())
    assert expected <= names
    assert {name for name in names if not name.startswith(("ATTUNE_", "MINE", *usual))} == set()
    assert "ATTUNE_WARM" not in outcome.result.stdout
    assert set(eval(own)) <= names  # noqa: S307 - a list of names, printed above


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ISOLATED])
async def test_a_script_has_its_three_streams_and_no_other_descriptor(
    world: World, mode: Mode
) -> None:
    text = "import os, stat; print(os.listdir('/proc/self/fd'), stat.S_ISFIFO(os.stat(1).st_mode))"
    outcome = await run_script(world, mode, text)
    assert outcome.result.stdout == "['0', '1', '2', '3'] True\n"


@pytest.mark.parametrize("mode", Mode)
async def test_f25_endless_output_takes_no_memory_and_does_not_hold_the_process(
    world: World, mode: Mode
) -> None:
    text = (
        "import os, sys\nblock = b'x' * 65536\n"
        "for _ in range(800): os.write(1, block)\n"
        "for _ in range(200): sys.stderr.write('y' * 65536)\n"
        "open('end', 'w').write('end')\n"
    )
    outcome = await run_script(world, mode, text)
    assert outcome.status is ExecutionStatus.COMPLETED
    assert (world.pack / "end").read_text() == "end"
    for each in (outcome.result.stdout, outcome.result.stderr):
        assert 10 * 1024 * 1024 < len(each) < 10 * 1024 * 1024 + 200
        assert each.rstrip().endswith("10 MB are kept.]")
    assert (await run_script(world, mode, "print('small')")).result.stdout == "small\n"


@pytest.mark.parametrize("mode", Mode)
async def test_output_is_told_while_the_action_runs(world: World, mode: Mode) -> None:
    os.mkfifo(world.pack / "fifo")
    running = world.start(
        world.file("s.py", "print('first')\nopen('fifo').read()\n"), **fields_of(mode)
    )
    await world.ear.hears("first\n")
    (world.pack / "fifo").write_text("go")
    assert (await running).status is ExecutionStatus.COMPLETED
