"""`attune run`: an action, now, followed to its end."""

from typing import Annotated, cast

import typer

from attune.cli.completion import action_refs
from attune.cli.failures import REFUSED, near_names
from attune.cli.frame import command
from attune.cli.live import followed
from attune.cli.parameters import needs_schema, parameters_from, variables_from
from attune.cli.results import result_panel
from attune.cli.session import Session
from attune.client.client import Client
from attune.client.models import Execution
from attune.client.requests import ExecutionOptions, RetryRules

_INTERRUPTED = 130

Ref = Annotated[str, typer.Argument(help="The action.", autocompletion=action_refs)]
Param = Annotated[
    list[str],
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter, read as the type that the action's schema gives it. NAME:=JSON takes any JSON.",
    ),
]
Params = Annotated[
    str | None, typer.Option("--params", metavar="JSON|@FILE", help="All parameters as one object.")
]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Stay until it has ended.")]
WaitTimeout = Annotated[
    float | None,
    typer.Option(min=0, metavar="SECONDS", help="Stay no longer than this; it goes on by itself."),
]
Timeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="How long it may run; time in the queue does not count."),
]
Priority = Annotated[
    str | None, typer.Option(help="critical, high, normal, low or background.", metavar="WORD")
]
Env = Annotated[
    list[str], typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable for the action.")
]
Follow = Annotated[
    bool | None,
    typer.Option(
        "--follow/--no-follow",
        show_default=False,
        help="Show its output while it runs (the default for people; with -o json it goes to standard error).",
    ),
]
Key = Annotated[
    str | None,
    typer.Option("--idempotency-key", help="Run once, however often this command is repeated."),
]
MaxRetries = Annotated[
    int | None,
    typer.Option(min=0, max=1000, metavar="N", help="How many attempts may follow a failed one."),
]
RetryDelay = Annotated[
    float | None,
    typer.Option(min=0, metavar="SECONDS", help="How long to wait before the next attempt."),
]
Backoff = Annotated[
    str | None,
    typer.Option(metavar="WORD", help="How the delay grows: constant, linear or exponential."),
]


def add_to(app: typer.Typer) -> None:
    command(
        app,
        "run",
        "attune run core.echo -p message=hello",
        "attune run deploy.service -p replicas=3 -p 'tags:=[\"blue\"]' --priority high",
        "attune run core.echo --params @parameters.json -o json",
        "attune run deploy.service --max-retries 5 --retry-delay 10 --backoff exponential",
    )(run)


def run(
    session: Session,
    ref: Ref,
    param: Param = [],  # noqa: B006 - never changed
    params: Params = None,
    wait: Wait = True,
    wait_timeout: WaitTimeout = None,
    timeout: Timeout = None,
    priority: Priority = None,
    env: Env = [],  # noqa: B006 - never changed
    follow: Follow = None,
    idempotency_key: Key = None,
    max_retries: MaxRetries = None,
    retry_delay: RetryDelay = None,
    backoff: Backoff = None,
) -> None:
    """Run an action, follow it and show its result.

    Exit code 0 if it completed, 1 if it did not.
    """
    options = _options(timeout, priority, env, idempotency_key, max_retries)
    rules = _retry_rules(retry_delay, backoff)
    with near_names(ref, session.client.actions.iterate):
        execution = _asked_for(session.client, ref, param, params, rules, options)
    if not wait:
        session.tell(f"Execution {execution.id} of {execution.action_ref} is asked for.", execution)
        return
    shown = session.for_people if follow is None else follow
    ended = _ended(session, execution, follow=shown, timeout=wait_timeout)
    _conclude(session, ended, with_output=not shown)


def _asked_for(
    client: Client,
    ref: str,
    param: list[str],
    params: str | None,
    rules: RetryRules,
    options: ExecutionOptions,
) -> Execution:
    """What is said of retries here is added to what the action says: the server takes one or the other."""
    action = client.actions.get(ref) if rules or needs_schema(param) else None
    values = parameters_from(param, params, action and action.param_schema)
    if action is not None and rules:
        options["retry"] = cast(RetryRules, {**(action.retry or {}), **rules})
    return client.executions.execute(ref, values, **options)


def _conclude(session: Session, ended: Execution, *, with_output: bool) -> None:
    if session.for_people:
        session.console.print(result_panel(ended, with_output=with_output))
    else:
        session.dump(ended)
    if not ended.succeeded:
        raise typer.Exit(REFUSED)


def _options(
    timeout: float | None,
    priority: str | None,
    env: list[str],
    key: str | None,
    max_retries: int | None,
) -> ExecutionOptions:
    options: ExecutionOptions = {}
    if timeout is not None:
        options["timeout_seconds"] = timeout
    if priority is not None:
        options["priority"] = priority
    if env:
        options["env_vars"] = variables_from(env)
    if key is not None:
        options["idempotency_key"] = key
    if max_retries is not None:
        options["max_retries"] = max_retries
    return options


def _retry_rules(delay: float | None, backoff: str | None) -> RetryRules:
    rules: RetryRules = {}
    if delay is not None:
        rules["delay"] = delay
    if backoff is not None:
        rules["backoff"] = backoff.lower()
    return rules


def _ended(
    session: Session, execution: Execution, *, follow: bool, timeout: float | None
) -> Execution:
    output = "stdout" if session.for_people else "stderr"
    targets = {"stdout": output, "stderr": "stderr"} if follow else {}
    try:
        return followed(
            session.client,
            execution,
            console=session.console,
            targets=targets,
            spinner=session.for_people,
            timeout=timeout,
        )
    except KeyboardInterrupt:
        session.note(
            f"Execution {execution.id} goes on; `attune execution cancel {execution.id}` ends it."
        )
        raise typer.Exit(_INTERRUPTED) from None
