"""Puts a wrapper around a function where it is found, and takes it away again.

A place is named as text: one that was renamed is told as missing, and the others are measured all the same.
"""

import importlib
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from bench.cost.ledger import Ledger

Wrapper = Callable[[Any], Any]


def put(stack: ExitStack, ledger: Ledger, place: str, wrapper: Wrapper) -> None:
    module_name, _, path = place.partition(":")
    owner_name, _, attribute = path.rpartition(".")
    try:
        module = importlib.import_module(module_name)
        owner = getattr(module, owner_name) if owner_name else module
    except (ImportError, AttributeError):
        ledger.missing.append(place)
        return
    put_on(stack, ledger, owner, attribute, wrapper)


def put_on(stack: ExitStack, ledger: Ledger, owner: Any, attribute: str, wrapper: Wrapper) -> None:
    if hasattr(owner, attribute):
        wrap(stack, owner, attribute, wrapper)
    else:
        ledger.missing.append(f"{owner.__module__}:{owner.__qualname__}.{attribute}")


def wrap(stack: ExitStack, owner: Any, attribute: str, wrapper: Wrapper) -> None:
    """An inherited attribute is put on the class itself and taken away again."""
    own = attribute in vars(owner)
    original = getattr(owner, attribute)
    setattr(owner, attribute, wrapper(original))
    if own:
        stack.callback(setattr, owner, attribute, original)
    else:
        stack.callback(delattr, owner, attribute)
