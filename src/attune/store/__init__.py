"""The database: one way to write a transaction, on SQLite and on PostgreSQL."""
