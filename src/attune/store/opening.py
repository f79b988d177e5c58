"""Which database a URL means."""

import random

from attune.kernel.clock import Clock
from attune.kernel.settings import Settings
from attune.kernel.urls import DatabaseKind, database_kind, sqlite_path
from attune.store.database import Database
from attune.store.postgresql import PostgreSQLDatabase
from attune.store.sqlite import SQLiteDatabase


def database_from(
    settings: Settings, clock: Clock, source: random.Random, *, hears_wakes: bool = True
) -> Database:
    """The database of these settings, not yet open."""
    url = settings.database_url
    match database_kind(url):
        case DatabaseKind.SQLITE:
            return SQLiteDatabase(sqlite_path(url), clock, source)
        case DatabaseKind.POSTGRESQL:
            return PostgreSQLDatabase(
                url,
                clock,
                source,
                max_connections=settings.database.max_connections,
                connect_timeout=settings.database.connect_timeout,
                command_timeout=settings.database.command_timeout,
                hears_wakes=hears_wakes,
            )
