"""Messages that nobody could handle: kept in the database, so that a person can look and replay."""
