"""What PostgreSQL's errors mean to us."""

from psycopg import Error, errors

from attune.kernel.errors import (
    AttuneError,
    BrokenConstraint,
    Contention,
    DatabaseUnavailable,
    DuplicateRow,
    InvalidInput,
    MissingReference,
)

DRIVER_ERRORS = (Error, OSError, TimeoutError, UnicodeEncodeError)

# What a transaction can meet that surely did not commit. The last but one is a process that stood still in it, whose
# session the server ended; the last one a table that changed since a statement was prepared.
_CONFLICT = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.LockNotAvailable,
    errors.IdleInTransactionSessionTimeout,
    errors.FeatureNotSupported,
)
_AWAY = (errors.OperationalError, errors.InvalidCatalogName, OSError, TimeoutError)
_UNFIT = (errors.DataError, UnicodeEncodeError)


def translated(error: Exception, server: str) -> AttuneError | None:
    """The error in our words; None for what can only be a mistake in the code, which is raised as it is."""
    if isinstance(error, errors.IntegrityError):
        return _constraint(error)
    if isinstance(error, _UNFIT):
        return InvalidInput(f"The database cannot hold a value: {_told(error)}.")
    if isinstance(error, _CONFLICT):
        return Contention(f"The transaction was ended by the server: {_told(error)}.")
    if isinstance(error, _AWAY):
        return DatabaseUnavailable(
            f"PostgreSQL at {server} is away: {_told(error)}.", server=server
        )
    return None


def _constraint(error: errors.IntegrityError) -> AttuneError:
    name = error.diag.constraint_name or error.diag.column_name
    match error:
        case errors.UniqueViolation():
            return DuplicateRow(f"There is such a row already: {name}.", constraint=name)
        case errors.ForeignKeyViolation():
            return MissingReference("The row refers to one that is not there.", constraint=name)
        case _:
            return BrokenConstraint(f"The row breaks a rule: {name}.", constraint=name)


def _told(error: Exception) -> str:
    """The server's own sentence, without its details: those may hold what somebody wanted to store."""
    primary = error.diag.message_primary if isinstance(error, Error) else None
    return (primary or str(error) or type(error).__name__).strip()
