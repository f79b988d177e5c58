"""The same port over the tables themselves."""
