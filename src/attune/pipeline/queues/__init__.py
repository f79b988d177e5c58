"""Queues: who waits for which slot, and who is next."""
