"""What an executor listens to, and what it does without being told."""
