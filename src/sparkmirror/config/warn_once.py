"""Warnings about settings. Many clients have the same settings: each process says it once."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

_said: set[str] = set()


def warn_once(log: logging.Logger, message: str) -> None:
    """Log a warning if this process has not logged the same one yet."""
    if message not in _said:
        _said.add(message)
        log.warning("%s", message)


@contextmanager
def unrecorded_warnings() -> Iterator[None]:
    """Log the warnings of the block again after it: the block shows no log lines."""
    before = set(_said)
    try:
        yield
    finally:
        _said.intersection_update(before)
