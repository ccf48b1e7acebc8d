"""Imports without garbage collections: what they create stays, and looking at it takes time."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Collect no garbage in the block, and never look again at what there is at its end."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
