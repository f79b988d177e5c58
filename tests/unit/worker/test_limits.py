"""What an action's limits mean to the kernel, and how it is told which one was hit."""

import resource
import signal

import pytest

from attune.catalog.retrying import Limits
from attune.worker.breaches import breach, crowded
from attune.worker.decide import ended
from attune.worker.errors import CannotRun
from attune.worker.limits import kept_bytes
from attune.worker.rlimits import rlimits_of, wrapped

MEGABYTE = 1024 * 1024
XCPU = 128 + signal.SIGXCPU
KILL = 128 + signal.SIGKILL


def test_no_limits_cost_nothing() -> None:
    assert rlimits_of(Limits()) == ()
    assert wrapped(("bash", "a.sh"), Limits(processes=3, output_mb=1), "/nowhere") == (
        "bash",
        "a.sh",
    )


def test_each_limit_is_one_of_the_kernel_s() -> None:
    limits = rlimits_of(Limits(cpu_seconds=1.5, memory_mb=64, open_files=20))
    assert limits == (
        (resource.RLIMIT_CPU, 2, 3),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_DATA, 64 * MEGABYTE, 64 * MEGABYTE),
        (resource.RLIMIT_NOFILE, 20, 20),
    )


def test_nothing_is_granted_that_the_worker_does_not_have_or_that_no_limit_can_say() -> None:
    own = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = rlimits_of(Limits(cpu_seconds=1e300, memory_mb=10**30, open_files=10**12))
    assert {which: hard for which, _, hard in limits}[resource.RLIMIT_NOFILE] == own
    assert all(soft <= hard < 2**63 for _, soft, hard in limits)


def test_a_limited_command_line_keeps_its_arguments() -> None:
    program, *options = wrapped(("bash", "--cpu=9"), Limits(cpu_seconds=3), "/usr/bin:/bin")
    assert program.endswith("/prlimit")
    assert options == ["--cpu=3:4", "--core=0:0", "--", "bash", "--cpu=9"]


def test_a_worker_that_cannot_set_limits_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("attune.worker.rlimits._USUAL_PLACES", "/nowhere")
    with pytest.raises(CannotRun, match="'prlimit' .of util-linux."):
        wrapped(("bash",), Limits(memory_mb=1), "/nowhere")


@pytest.mark.parametrize(
    ("asked", "kept"), [(None, 1000), (1, 1000), (0.0005, 524), (1e-9, 0), (1e308, 1000)]
)
def test_an_action_may_have_less_of_its_output_kept_than_is_usual(
    asked: float | None, kept: int
) -> None:
    assert kept_bytes(Limits(output_mb=asked), 1000) == kept


def test_cpu_time_names_the_limit_and_what_was_used() -> None:
    limits = Limits(cpu_seconds=2)
    assert breach(limits, XCPU, "", 2.03) == (
        "The action was ended for its limit of 2 s of CPU time for each process (limits.cpu_seconds): "
        "it used 2.0 s."
    )
    assert "one that it started" in str(breach(limits, XCPU, "", 0.1))
    assert "it used 3.0 s" in str(breach(limits, KILL, "", 3.0))
    assert "it used 2.0 s" in str(breach(limits, XCPU, "", 1.4))


def test_a_kill_by_others_is_not_taken_for_a_breach() -> None:
    assert breach(Limits(cpu_seconds=2), KILL, "", 0.5) is None
    assert breach(Limits(), XCPU, "MemoryError", 9) is None
    assert breach(Limits(memory_mb=5, open_files=5), 1, "no such file", None) is None


@pytest.mark.parametrize(
    "words",
    [
        "Traceback ...\nMemoryError",
        "bash: xrealloc: cannot allocate 134217856 bytes",
        "# Fatal process OOM in Failed to reserve virtual memory for CodeRange",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "fork: Cannot allocate memory",
    ],
)
def test_a_lack_of_memory_is_recognised_by_the_program_s_own_words(words: str) -> None:
    sentence = breach(Limits(memory_mb=64), 1, words, None)
    assert "64 MB of memory for each process (limits.memory_mb) and asked for more" in str(sentence)


def test_a_crash_under_a_limit_of_memory_is_told_with_care() -> None:
    assert "may have needed more" in str(breach(Limits(memory_mb=64), 139, "", None))


def test_open_files_and_processes_are_named_with_their_limits() -> None:
    files = breach(Limits(open_files=20), 1, "OSError: [Errno 24] Too many open files: 'x'", None)
    assert "20 open files for each process (limits.open_files)" in str(files)
    assert "5 processes at once (limits.processes): there were 9." in crowded(5, 9)


def test_the_sentence_stands_beside_the_action_s_own_words() -> None:
    assert ended(1, None, "MemoryError\n", "Too much.").error == "MemoryError\nToo much."
    assert ended(1, None, "", "Too much.").error == "Too much."
    assert ended(0, None, "MemoryError", "Too much.").error is None
