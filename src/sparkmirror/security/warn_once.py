"""Warnings about settings. Many clients have the same settings: each process says it once."""

from __future__ import annotations

import logging

_said: set[str] = set()


def warn_once(log: logging.Logger, message: str) -> None:
    """Log a warning if this process has not logged the same one yet."""
    if message not in _said:
        _said.add(message)
        log.warning("%s", message)
