"""What SQLite's errors mean to us."""

import sqlite3

from attune.kernel.errors import (
    AttuneError,
    BrokenConstraint,
    Contention,
    DatabaseUnavailable,
    DuplicateRow,
    InvalidInput,
    MissingReference,
)

# The second one is an integer of more than 64 bits.
DRIVER_ERRORS = (sqlite3.Error, OverflowError)

_BUSY = {"SQLITE_BUSY", "SQLITE_LOCKED"}
_AWAY = {
    "SQLITE_FULL",
    "SQLITE_IOERR",
    "SQLITE_CANTOPEN",
    "SQLITE_READONLY",
    "SQLITE_CORRUPT",
    "SQLITE_NOTADB",
    "SQLITE_NOMEM",
}


def translated(error: Exception) -> AttuneError | None:
    """The error in our words; None for what can only be a mistake in the code, which is raised as it is."""
    if isinstance(error, OverflowError):
        return InvalidInput(f"The database cannot hold a value: {error}.")
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_CONSTRAINT"):
        return _constraint(name, str(error))
    base = "_".join(name.split("_")[:2])
    if base in _BUSY:
        return Contention("Another program holds the SQLite file.")
    if base in _AWAY:
        return DatabaseUnavailable(f"SQLite cannot go on: {error}.", reason=name)
    return None


def _constraint(name: str, text: str) -> AttuneError:
    subject = text.rpartition(": ")[2]
    match name:
        case "SQLITE_CONSTRAINT_UNIQUE" | "SQLITE_CONSTRAINT_PRIMARYKEY":
            return DuplicateRow(f"There is such a row already: {subject}.", constraint=subject)
        case "SQLITE_CONSTRAINT_FOREIGNKEY":
            return MissingReference("The row refers to one that is not there.", constraint=None)
        case _:
            return BrokenConstraint(f"The row breaks a rule: {subject}.", constraint=subject)
