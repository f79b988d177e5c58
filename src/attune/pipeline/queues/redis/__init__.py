"""Queues in Redis: who is next, at the speed of memory. The database stays the truth."""
