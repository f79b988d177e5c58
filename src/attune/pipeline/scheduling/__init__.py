"""Scheduling: which worker gets what is ready, and the hand-off to it."""
