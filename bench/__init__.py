"""Benchmarks: each case beside the bare driver (or a peer) in the same run, on private servers."""
