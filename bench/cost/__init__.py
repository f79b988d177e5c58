"""Where the time of an execution goes, and what it costs in statements, rows, commits and messages."""
