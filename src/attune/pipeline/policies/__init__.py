"""Policies: which one binds an execution, and whether its gates are open."""
