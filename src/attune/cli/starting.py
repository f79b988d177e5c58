"""Loading without looking for garbage."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# Rows come and go by the thousand, and hold nothing in circles: the usual thresholds search for a tenth of the time.
_RARELY: Final = (10_000, 20, 50)


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
        gc.set_threshold(*_RARELY)
        gc.enable()
