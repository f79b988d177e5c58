"""Brings the database to what a pack's files say, in one transaction."""
