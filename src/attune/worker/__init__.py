"""Runs one action to its end: parameters in, a bounded result out, and no process left behind."""
