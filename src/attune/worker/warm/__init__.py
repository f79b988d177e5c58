"""Python actions without the start of an interpreter for each: forked from a warm one, or in a process that stays."""
