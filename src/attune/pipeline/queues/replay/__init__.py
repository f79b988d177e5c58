"""The decision log, replayed: who stood where after each item, and which item breaks a rule."""
