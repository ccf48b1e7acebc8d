"""Log lines with the connector and the task that they are about.

Modules log through `logging.getLogger(__name__)` with lazy arguments and never set a handler; only
a process's main module calls `install`. Inside `with context(connector="c", task=0):` every line of
every logger is prefixed `[c|task-0] `, as Kafka Connect's log pattern does. A process with several
flows has each in a block `with flow_context("A->B"):`, and the prefixes are `[A->B.c|task-0] ` and
`[A->B] `. A `ContextThread` has the prefix of the code that starts it.

A warning or an error that repeats is written once, and then at growing intervals with a count: a
cluster that is down does not fill the log.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from typing import TextIO

_prefix: ContextVar[str] = ContextVar("sparkmirror_log_prefix", default="")
_flow: ContextVar[str] = ContextVar("sparkmirror_log_flow", default="")

FORMAT = "[%(asctime)s] %(level)s %(context)s%(message)s%(repeats)s (%(name)s:%(lineno)d)"
"""Kafka Connect's log pattern."""
LEVELS_VARIABLE = "SPARKMIRROR_LOG_LEVELS"
"""The variable with the log levels of a start: `root=WARN,org.apache.kafka.clients=DEBUG`."""
_LOG4J_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}
"""The levels whose names in Connect's log are not Python's."""

FIRST_INTERVAL_S = 10.0
INTERVAL_FACTOR = 3.0
MAX_INTERVAL_S = 600.0
"""A line that repeats is written after 10 s, 30 s, 90 s, 270 s, then every 10 minutes."""
QUIET_S = 60.0
"""A line that was not logged for so long is written again at once."""
MAX_LINES = 1000
"""How many different lines are remembered."""


def connector_prefix(connector: str, task: int | None = None, scope: str = "") -> str:
    """The prefix of a log line: connector, task and scope as in Kafka Connect's log pattern."""
    parts = [connector, *([] if task is None else [f"task-{task}"]), *([scope] if scope else [])]
    return f"[{'|'.join(parts)}] "


@contextmanager
def context(*, connector: str, task: int | None = None, scope: str = "") -> Iterator[None]:
    """Prefix every log line inside the block with the connector, its task and a scope."""
    flow = _flow.get()
    name = f"{flow}.{connector}" if flow else connector
    token = _prefix.set(connector_prefix(name, task, scope))
    try:
        yield
    finally:
        _prefix.reset(token)


@contextmanager
def flow_context(flow: str) -> Iterator[None]:
    """Prefix every log line inside the block with the flow, and its connectors' names with it."""
    tokens = _flow.set(flow), _prefix.set(connector_prefix(flow))
    try:
        yield
    finally:
        _flow.reset(tokens[0])
        _prefix.reset(tokens[1])


class ContextThread(threading.Thread):
    """A daemon thread whose log lines have the prefix of the code that starts it."""

    def __init__(
        self, *, target: Callable[..., object], name: str, args: Sequence[object] = ()
    ) -> None:
        super().__init__(target=target, args=args, name=name, daemon=True)
        self._context = copy_context()

    def start(self) -> None:
        """Start the thread."""
        self._context = copy_context()
        super().start()

    def run(self) -> None:
        """Run the target."""
        self._context.run(super().run)


class ContextFilter(logging.Filter):
    """Adds the current prefix as `%(context)s`, and Connect's name of the level as `%(level)s`."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Attach both; never drop the record."""
        record.context = _prefix.get()
        record.level = _LOG4J_LEVELS.get(record.levelname, record.levelname)
        return True


@dataclass(slots=True)
class _RepeatedLine:
    """When a line was written, and how often it was dropped since."""

    written_at: float
    last_at: float
    interval_s: float = FIRST_INTERVAL_S
    dropped: int = 0


class RepeatedLines:
    """Decides which of the lines that repeat are written. The caller passes the time."""

    def __init__(self) -> None:
        self._lines: dict[Hashable, _RepeatedLine] = {}

    def add(self, line: Hashable, now: float) -> int | None:
        """Return how often the line was dropped since it was last written; None to drop it."""
        known = self._lines.get(line)
        if known is None or now - known.last_at >= QUIET_S:
            self._remember(line, now)
            return known.dropped if known else 0
        known.last_at = now
        if now - known.written_at < known.interval_s:
            known.dropped += 1
            return None
        dropped, known.dropped, known.written_at = known.dropped, 0, now
        known.interval_s = min(known.interval_s * INTERVAL_FACTOR, MAX_INTERVAL_S)
        return dropped

    def _remember(self, line: Hashable, now: float) -> None:
        self._lines.pop(line, None)
        if len(self._lines) >= MAX_LINES:
            self._lines.pop(next(iter(self._lines)))  # the oldest
        self._lines[line] = _RepeatedLine(written_at=now, last_at=now)


class RepeatedLineFilter(logging.Filter):
    """Drops warnings and errors that repeat; adds the count to each record, as `%(repeats)s`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._lines = RepeatedLines()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is written. Any thread may call."""
        record.repeats = ""
        if record.levelno < logging.WARNING:
            return True
        line = (record.name, record.levelno, _prefix.get(), _message(record))
        with self._lock:
            dropped = self._lines.add(line, self._clock())
        if dropped:
            times = "once" if dropped == 1 else f"{dropped} times"
            record.repeats = f" (and {times} more since it was last logged)"
        return dropped is not None


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  the handler reports a line that cannot be formatted
        return str(record.msg)


def install(stream: TextIO, level: int = logging.INFO) -> logging.Handler:
    """Send log lines to `stream`. Call it once per process."""
    handler = logging.StreamHandler(stream)
    add_handler(handler, logging.Formatter(FORMAT))
    logging.getLogger().setLevel(level)
    return handler


def add_handler(handler: logging.Handler, formatter: logging.Formatter) -> None:
    """Send log lines to a handler, with their context and without those that repeat."""
    handler.setFormatter(formatter)
    handler.addFilter(ContextFilter())
    handler.addFilter(RepeatedLineFilter())
    logging.getLogger().addHandler(handler)


def set_levels(levels: Mapping[str, int]) -> None:
    """Set loggers by name; `root` is the root logger."""
    for name, level in levels.items():
        logging.getLogger(None if name == "root" else name).setLevel(level)
