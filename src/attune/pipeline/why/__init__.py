"""Why: what an execution waits for, who is in its way, and what must happen next. Nothing here changes anything."""
