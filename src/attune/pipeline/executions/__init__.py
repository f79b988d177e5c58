"""Executions: what is asked for, what is kept of it, and how it is found again."""
