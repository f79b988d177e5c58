"""Loading without looking for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Nothing that is loaded is garbage, and looking for some is a fifth of what a start takes.

    What is there afterwards stays as long as the process: later searches leave it out.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
