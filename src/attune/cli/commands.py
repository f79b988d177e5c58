"""Every command with its module and its one line of help.

The frame shows the list from here, so that only the module of the command that is called is ever loaded.
`worker` alone is a process, and with a word after it a command.
"""

from typing import Final, NamedTuple


class Command(NamedTuple):
    module: str
    help: str


_PRODUCTION: Final = "Needs PostgreSQL and RabbitMQ."

COMMANDS: Final = {
    "up": Command("processes", "Run everything in this one process, on SQLite."),
    "api": Command("processes", f"Serve the REST API. {_PRODUCTION}"),
    "executor": Command(
        "processes", f"Turn events into executions and hand them to workers. {_PRODUCTION}"
    ),
    "worker": Command("processes", f"Run the actions of executions. {_PRODUCTION}"),
    "sensor": Command("processes", f"Watch the world and tell of events. {_PRODUCTION}"),
    "db": Command("database", "Upgrade the database and check its schema."),
    "run": Command("run", "Run an action, follow it and show its result."),
    "execution": Command("executions", "Look at executions, read their logs, cancel them."),
    "why": Command("why", "Tell why an execution waits, and for what."),
    "queue": Command("queues", "See who waits; pause, resume and clear queues."),
    "event": Command("events", "Tell of events, and see which rules answered."),
    "enforcement": Command(
        "enforcements", "See what rules asked for, and why it did or did not run."
    ),
    "rule": Command("rules", "Look at rules, switch them on and off."),
    "action": Command("actions", "Look at actions and their parameters."),
    "trigger": Command("triggers", "Look at triggers."),
    "worker list": Command("workers", "List workers: how each is, its load, what it can run."),
    "worker show": Command("workers", "Show all about a worker."),
    "worker cordon": Command("workers", "Give a worker nothing more to do."),
    "worker uncordon": Command("workers", "Give a worker work again."),
    "worker drain": Command("workers", "Cordon a worker and wait until it has nothing left to do."),
    "dead-letter": Command(
        "dead_letters", "Look at messages that nobody could handle, and send them back."
    ),
    "settings": Command("runtime_settings", "Look at and change settings while everything runs."),
    "pack": Command("packs", "Install packs and look at them."),
    "login": Command("accounts", "Log in to a server and remember it."),
    "logout": Command("accounts", "Forget the tokens of a server."),
    "whoami": Command("accounts", "Show the server, the account and its rights."),
}
