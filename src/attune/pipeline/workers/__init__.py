"""Workers: who is there to run things, what they can run, and how much."""
