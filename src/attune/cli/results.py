"""What an execution came to, as people like to read it."""

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from attune.cli.rendering import duration, plain, pretty
from attune.client.models import Execution, ExecutionSummary


def result_panel(execution: Execution, *, with_output: bool) -> Panel:
    """`with_output` shows what it wrote, too: for when that was not on the screen already."""
    colour = "green" if execution.succeeded else "red"
    words = f"{execution.status} in {took(execution)}" if took(execution) else execution.status
    return Panel(
        Group(*_body(execution, with_output=with_output)),
        title=Text(f"{execution.action_ref} {words}", style=f"bold {colour}"),
        title_align="left",
        subtitle=Text(f"execution {execution.id}", style="dim"),
        subtitle_align="right",
        border_style=colour,
        expand=False,
    )


def took(execution: ExecutionSummary) -> str | None:
    """How long it ran; None before it has ended, or where it never started."""
    seconds = _seconds_of(execution)
    return None if seconds is None else duration(seconds)


def _seconds_of(execution: ExecutionSummary) -> float | None:
    result = execution.result if isinstance(execution, Execution) else None
    measured = (result or {}).get("duration_ms")
    if isinstance(measured, int | float):
        return measured / 1000
    if execution.is_finished and execution.started_at and execution.updated:
        return (execution.updated - execution.started_at).total_seconds()
    return None


def _body(execution: Execution, *, with_output: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if execution.error:
        parts.append(Text(plain(str(execution.error)), style="red"))
    if execution.data is not None:
        parts.append(pretty(execution.data))
    if with_output:
        parts += [Text(plain(text.rstrip("\n"))) for text in _outputs(execution)]
    code = (execution.result or {}).get("exit_code")
    if code:
        parts.append(Text(f"exit code {code}", style="dim"))
    return parts or [Text("It gave no data.", style="dim")]


def _outputs(execution: Execution) -> list[str]:
    """A failure's error is often the end of its standard error: that is not shown twice."""
    error = str(execution.error or "").strip()
    texts = [execution.output("stdout"), execution.output("stderr")]
    return [text for text in texts if text.strip() and text.strip() != error]
