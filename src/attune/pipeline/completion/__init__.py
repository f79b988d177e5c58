"""Completion: what ends, what it frees, and who is next, in one transaction."""
