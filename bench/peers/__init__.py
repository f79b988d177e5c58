"""Other job engines, each on the same no-op work, for comparison."""
