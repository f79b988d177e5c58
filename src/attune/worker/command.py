"""What to start for a run."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from attune.worker.delivery import delivered, encoded, fill, memory_file, private_file
from attune.worker.entry import entry_file, interpreter, program
from attune.worker.environment import child_environment
from attune.worker.errors import CannotRun
from attune.worker.folders import SCRATCH, Scripts, make_folder
from attune.worker.model import Action, Delivery, Run
from attune.worker.process import Command
from attune.worker.shell import Script, preamble


@contextmanager
def command_of(
    run: Run, inherited: Mapping[str, str], folder: Path, scripts: Scripts
) -> Iterator[Command]:
    """Its descriptors are open inside the `with` only, which is all that starting it needs.

    Parameters are in memory that the child gets as a descriptor, or in the file that the action asked for:
    never in its arguments or its environment.
    """
    action = run.action
    make_folder(run.artifacts_dir)
    document = encoded(delivered(run), action.parameter_format)
    file = None
    if action.parameter_delivery is Delivery.FILE:
        file, document = private_file(folder / "parameters", document), b""
    environment = child_environment(run, inherited, file, folder / SCRATCH)
    with ExitStack() as open_here:
        descriptors: tuple[int, ...] = ()
        if action.inline:
            descriptors = (memory_file(),)
            open_here.callback(os.close, descriptors[0])
            arguments = _inline(run, environment, scripts, descriptors[0])
        else:
            arguments = (*interpreter(action, environment["PATH"]), str(entry_file(action)))
        stdin = memory_file(document)
        open_here.callback(os.close, stdin)
        yield Command(
            arguments=arguments,
            environment=environment,
            folder=_working_folder(action, folder),
            stdin=stdin,
            descriptors=descriptors,
            limits=action.limits,
        )


def _inline(
    run: Run, environment: Mapping[str, str], scripts: Scripts, descriptor: int
) -> tuple[str, ...]:
    """bash reads the preamble from the descriptor; the script is a file named as bash's messages shall call it."""
    action = run.action
    if "\0" in action.entrypoint:
        raise CannotRun("The script holds a NUL character, which no shell can read.")
    try:
        file = scripts.file(run.work_dir, action.ref.replace("/", "_"), action.entrypoint)
        script = Script(action.ref, file, descriptor)
        fill(descriptor, preamble(delivered(run), environment, script).encode())
    except UnicodeEncodeError:
        raise CannotRun("The script or a parameter holds half of a surrogate pair.") from None
    return program("bash", environment["PATH"]), f"/dev/fd/{descriptor}"


def _working_folder(action: Action, folder: Path) -> Path:
    """The pack's folder; without one, that for temporary files, which is empty and goes with the run."""
    if action.pack_dir is not None and action.pack_dir.is_dir():
        return action.pack_dir
    return folder / SCRATCH
