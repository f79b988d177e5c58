"""What PostgreSQL's errors mean to us."""

import asyncpg

from attune.kernel.errors import (
    AttuneError,
    BrokenConstraint,
    Contention,
    DatabaseUnavailable,
    DuplicateRow,
    InvalidInput,
    MissingReference,
)

# The last one is what a statement gets that is to be sent over a connection which the server is just ending.
DRIVER_ERRORS = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    OSError,
    TimeoutError,
    asyncpg.InternalClientError,
)

# What a transaction can meet that surely did not commit. The last two are a process that stood still in one, whose
# session the server ended.
_CONFLICT = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
)
_AWAY = (
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    OSError,
    TimeoutError,
)


def translated(error: Exception, server: str) -> AttuneError | None:
    """The error in our words; None for what can only be a mistake in the code, which is raised as it is."""
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return _constraint(error)
    if _is_unfit(error):
        return InvalidInput(f"The database cannot hold a value: {error}.")
    if isinstance(error, _CONFLICT) or isinstance(error.__cause__, _CONFLICT):
        return Contention(f"The transaction was ended by the server: {error}.")
    if isinstance(error, _AWAY) or _is_closed(error):
        reason = str(error) or type(error).__name__
        return DatabaseUnavailable(f"PostgreSQL at {server} is away: {reason}.", server=server)
    return None


def _constraint(error: asyncpg.IntegrityConstraintViolationError) -> AttuneError:
    name = error.constraint_name or error.column_name
    match error:
        case asyncpg.UniqueViolationError():
            return DuplicateRow(f"There is such a row already: {name}.", constraint=name)
        case asyncpg.ForeignKeyViolationError():
            return MissingReference("The row refers to one that is not there.", constraint=name)
        case _:
            return BrokenConstraint(f"The row breaks a rule: {name}.", constraint=name)


def _is_unfit(error: Exception) -> bool:
    """A value out of range, or a text with a zero byte: told by the server, or by the driver before it sends."""
    from_driver = isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError)
    return from_driver or isinstance(error, asyncpg.DataError)


def _is_closed(error: Exception) -> bool:
    """The driver has one error class for a lost connection and for its misuse; only the words differ."""
    return isinstance(error, asyncpg.InterfaceError) and "clos" in str(error)
