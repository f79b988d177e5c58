"""Attune: event-driven automation with order and limits you can prove.

What it exports is loaded when it is first asked for, because every command imports this module and should
start at once. `__init__.pyi` tells type checkers what there is.
"""

import importlib

__all__ = ["AsyncClient", "Client", "__version__"]


def __getattr__(name: str) -> object:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("attune-engine")
    if name in __all__:
        return getattr(importlib.import_module("attune.client"), name)
    raise AttributeError(f"module 'attune' has no attribute {name!r}")
