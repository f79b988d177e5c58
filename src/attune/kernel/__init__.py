"""The words every other package speaks: time, ids, errors, messages, states, settings."""
