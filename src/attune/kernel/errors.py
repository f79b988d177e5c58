"""One tree of errors.

An error has a code that never changes (clients match on it), typed fields (logs and API details show
them) and one sentence for people. Whether trying again can help is a property of the class, because
the bus, the loops and the API must all answer that question alike.
"""

from typing import ClassVar


class AttuneError(Exception):
    """Base of everything Attune raises on purpose; a bare subclass of Exception is a bug."""

    code: ClassVar[str] = "internal"
    retriable: ClassVar[bool] = False

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.message, self.fields)


def _rebuild(kind: type[AttuneError], message: str, fields: dict[str, object]) -> AttuneError:
    return kind(message, **fields)


class InvalidInput(AttuneError):
    """The caller's input breaks a rule; `field` names where, the message which rule."""

    code = "invalid_input"


class InvalidSettings(InvalidInput):
    """The configuration cannot be used; the process must not start with a guess."""

    code = "invalid_settings"


class Unauthenticated(AttuneError):
    code = "unauthenticated"


class Forbidden(AttuneError):
    code = "forbidden"


class NotFound(AttuneError):
    code = "not_found"


class Conflict(AttuneError):
    """The request is sound, but the present state rules it out."""

    code = "conflict"


class IllegalTransition(Conflict):
    """A status may not follow another: nothing was written."""

    code = "illegal_transition"


class DuplicateRow(Conflict):
    """A unique key is taken; `constraint` names it."""

    code = "duplicate"


class MissingReference(Conflict):
    """A row refers to another that does not exist; `constraint` names the link."""

    code = "missing_reference"


class BrokenConstraint(Conflict):
    """A row breaks a rule of its table; `constraint` names it. Input checks should have caught it before."""

    code = "broken_constraint"


class Limited(AttuneError):
    """A limit of rate, size or quota was reached; `retry_after` is in seconds where known."""

    code = "limited"


class NotConfigured(AttuneError):
    code = "not_configured"


class Unavailable(AttuneError):
    """A server that we need is away. Nothing is known to be wrong with the request itself."""

    code = "unavailable"
    retriable = True


class DatabaseUnavailable(Unavailable):
    code = "database_unavailable"


class BusUnavailable(Unavailable):
    code = "bus_unavailable"


class QueueUnavailable(Unavailable):
    """The queue outside the database cannot be asked; the database can admit without it."""

    code = "queue_unavailable"


class QueueLost(QueueUnavailable):
    """The queue's server answers, but what it holds is not the whole; it must be rebuilt from the database."""

    code = "queue_lost"


class Contention(AttuneError):
    """Others held the same rows for longer than the retries lasted."""

    code = "contention"
    retriable = True


class Outdated(Contention):
    """What a step began with has changed since. Nobody is in its way: it is tried again at once."""

    code = "outdated"


class DatabaseInUse(AttuneError):
    """An SQLite file belongs to one process, and another one has it."""

    code = "database_in_use"


class SchemaMismatch(AttuneError):
    """The database's schema is not the one that this version was made for."""

    code = "schema_mismatch"


class StepMisuse(AttuneError):
    """A transaction's coroutine did something that only some databases could allow."""

    code = "step_misuse"


class BadMessage(AttuneError):
    """A message that no retry can mend: broken, of unknown type or version, or orphaned."""

    code = "bad_message"
