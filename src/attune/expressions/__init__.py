"""Conditions and templates: a small language over JSON data that can neither run code nor run away.

Callers use `language.compile_expression`, `templates.compile_template` and `conditions.compile_condition`;
each refuses what cannot be parsed, naming the place, and compiles the rest once. Evaluating takes a scope
(the names, as JSON data) and spends from a budget, so that it ends in bounded time and memory.
"""
