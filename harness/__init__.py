"""Private, real servers for tests and benchmarks: on loopback, with throw-away data, gone with their owner."""
