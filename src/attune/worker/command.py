"""What to start for a run, and the private folder that lives as long as the run."""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from attune.worker.delivery import delivered, encoded, fill, memory_file, private_file
from attune.worker.entry import entry_file, interpreter, program
from attune.worker.environment import child_environment
from attune.worker.errors import CannotRun
from attune.worker.model import Action, Delivery, Run
from attune.worker.process import Command
from attune.worker.removal import remove
from attune.worker.shell import Script, preamble

_SCRATCH: Final = "tmp"


@asynccontextmanager
async def private_folder(run: Run) -> AsyncIterator[Path]:
    """Readable by its owner alone, with a place for temporary files; gone afterwards with all that is in it."""
    folder = _made(run)
    try:
        (folder / _SCRATCH).mkdir()
        yield folder
    finally:
        await remove(folder)


def _made(run: Run) -> Path:
    prefix = f"{run.execution_id}-{run.attempt}-"
    try:
        return Path(tempfile.mkdtemp(prefix=prefix, dir=run.work_dir))
    except FileNotFoundError:
        run.work_dir.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=prefix, dir=run.work_dir))


@contextmanager
def command_of(run: Run, inherited: Mapping[str, str], folder: Path) -> Iterator[Command]:
    """Its descriptors are open inside the `with` only, which is all that starting it needs.

    Parameters are in memory that the child gets as a descriptor, or in the file that the action asked for:
    never in its arguments or its environment.
    """
    action = run.action
    run.artifacts_dir.mkdir(parents=True, exist_ok=True)
    document = encoded(delivered(run), action.parameter_format)
    file = None
    if action.parameter_delivery is Delivery.FILE:
        file, document = private_file(folder / "parameters", document), b""
    environment = child_environment(run, inherited, file, folder / _SCRATCH)
    with ExitStack() as open_here:
        descriptors: tuple[int, ...] = ()
        if action.inline:
            descriptors = (memory_file(),)
            open_here.callback(os.close, descriptors[0])
            arguments = _inline(run, environment, folder, descriptors[0])
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
    run: Run, environment: Mapping[str, str], folder: Path, descriptor: int
) -> tuple[str, ...]:
    """bash reads the preamble from the descriptor; the script is a file named as bash's messages shall call it."""
    action = run.action
    if "\0" in action.entrypoint:
        raise CannotRun("The script holds a NUL character, which no shell can read.")
    try:
        file = private_file(folder / action.ref.replace("/", "_"), action.entrypoint.encode())
        script = Script(action.ref, file, descriptor)
        fill(descriptor, preamble(delivered(run), environment, script).encode())
    except UnicodeEncodeError:
        raise CannotRun("The script or a parameter holds half of a surrogate pair.") from None
    return program("bash", environment["PATH"]), f"/dev/fd/{descriptor}"


def _working_folder(action: Action, folder: Path) -> Path:
    """The pack's folder; without one, that for temporary files, which is empty and goes with the run."""
    if action.pack_dir is not None and action.pack_dir.is_dir():
        return action.pack_dir
    return folder / _SCRATCH
