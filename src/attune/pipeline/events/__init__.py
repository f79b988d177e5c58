"""Events: something happened."""
