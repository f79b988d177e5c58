"""Enforcements: a rule answers an event, once, with an execution or with the reason why not."""
