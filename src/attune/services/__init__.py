"""How a process is put together, started and stopped."""
