"""The control plane in one thread, under a clock and with faults that a test owns."""
