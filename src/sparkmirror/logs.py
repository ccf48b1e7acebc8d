"""Log lines with the connector and the task that they are about.

Modules log through `logging.getLogger(__name__)` with lazy arguments and never set a handler; only
a process's main module calls `install`. Inside `with context(connector="c", task=0):` every line of
every logger is prefixed `[c|task-0] `, as Kafka Connect's log pattern does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

_prefix: ContextVar[str] = ContextVar("sparkmirror_log_prefix", default="")

FORMAT = "[%(asctime)s] %(levelname)s %(context)s%(message)s (%(name)s:%(lineno)d)"


@contextmanager
def context(*, connector: str, task: int | None = None, scope: str = "") -> Iterator[None]:
    """Prefix every log line inside the block with the connector, its task and a scope."""
    parts = [connector, *([] if task is None else [f"task-{task}"]), *([scope] if scope else [])]
    token = _prefix.set(f"[{'|'.join(parts)}] ")
    try:
        yield
    finally:
        _prefix.reset(token)


class ContextFilter(logging.Filter):
    """Adds the current prefix to each record, as `%(context)s`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Attach the prefix; never drop the record."""
        record.context = _prefix.get()
        return True


def install(stream: TextIO, level: int = logging.INFO) -> logging.Handler:
    """Send log lines to `stream`. Call it once per process."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter(FORMAT))
    handler.addFilter(ContextFilter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level)
    return handler


def set_levels(levels: Mapping[str, int]) -> None:
    """Set loggers by name; `root` is the root logger."""
    for name, level in levels.items():
        logging.getLogger(None if name == "root" else name).setLevel(level)
