"""Attune as its users run it: real processes, asked through the public API, watched through the database."""
