"""Rules: which of them answer an event, and why the others do not."""
