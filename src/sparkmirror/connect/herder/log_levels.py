"""Log levels at run time: Connect's logger names over Python's loggers.

Operators set levels with the names they know from Java. REST shows those names as they were set.
`PYTHON_LOGGERS` maps each to the Python loggers of the same part of the worker:

    root                                       all loggers
    org.apache.kafka.clients                   sparkmirror.wire, ...
    org.apache.kafka.connect.mirror            sparkmirror.connect.connectors, sparkmirror.copy, ...
    org.apache.kafka.connect.runtime.rest      sparkmirror.rest
    sparkmirror.store                          sparkmirror.store

A level set on a name is set on all known names below it, as in Connect. Any thread may call.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from sparkmirror.connect.herder.herder import LoggerLevel
from sparkmirror.errors import NotFound

ROOT: Final = "root"
LEVELS: Final = {
    "OFF": logging.CRITICAL + 10,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}
"""Connect's levels, from the fewest lines to the most."""

PYTHON_LOGGERS: Final[Mapping[str, tuple[str, ...]]] = {
    "org.apache.kafka.clients": (
        "sparkmirror.wire",
        "sparkmirror.copy.task.cluster_connections",
    ),
    "org.apache.kafka.common": ("sparkmirror.security",),
    "org.apache.kafka.connect.mirror": (
        "sparkmirror.connect.connectors",
        "sparkmirror.copy",
        "sparkmirror.engine",
        "sparkmirror.mirror",
    ),
    "org.apache.kafka.connect.runtime": ("sparkmirror.connect", "sparkmirror.worker"),
    "org.apache.kafka.connect.runtime.distributed": (
        "sparkmirror.connect.herder",
        "sparkmirror.connect.runtime",
    ),
    "org.apache.kafka.connect.runtime.rest": ("sparkmirror.rest",),
    "org.apache.kafka.connect.storage": ("sparkmirror.store",),
}
"""Java name to Python loggers. Each of them has at least one module that logs."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class LogLevels:
    """The loggers of one process."""

    def __init__(
        self,
        manager: logging.Manager | None = None,
        clock_ms: Callable[[], int] = _now_ms,
        known: Mapping[str, str] | None = None,
    ) -> None:
        """`known` maps names to the levels that were set before the start.

        Of a name and one below it, the longer one counts for its own loggers, as in log4j.
        """
        self._manager = manager or logging.Logger.manager
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._configured: dict[str, LoggerLevel] = {}
        self._python_levels: dict[str, int] = {}
        self._listeners: list[Callable[[Mapping[str, int]], None]] = []
        for name, level in sorted((known or {}).items(), key=lambda item: _parents_first(item[0])):
            self._configured[name] = LoggerLevel(level=level, last_modified_ms=None)
            for one in (name, *_mapped_names_below(name)):
                self._apply(one, level)

    def all_levels(self) -> Mapping[str, LoggerLevel]:
        """Return root and every known logger, sorted by name."""
        with self._lock:
            return {name: self._level(name) for name in sorted({ROOT, *self._names()})}

    def level(self, name: str) -> LoggerLevel:
        """Return one logger. Raises NotFound."""
        with self._lock:
            if name != ROOT and name not in self._names():
                raise NotFound(f"Logger {name} not found.")
            return self._level(name)

    def set_level(self, name: str, level: str) -> Sequence[str]:
        """Set a name and all below it; return the names whose level has changed, sorted."""
        checked = check_level(level)
        with self._lock:
            concerned = {name, *(one for one in self._names() if _is_below(one, name))}
            changed = [one for one in sorted(concerned) if self._level(one).level != checked]
            changed += [name] if name not in changed and name not in self._known() else []
            new_level = LoggerLevel(level=checked, last_modified_ms=self._clock_ms())
            for one in changed:
                self._configured[one] = new_level
            for one in sorted(changed, key=_parents_first):
                self._apply(one, checked)
            for listener in self._listeners if changed else ():
                listener(dict(self._python_levels))
            return sorted(changed)

    def add_listener(self, listener: Callable[[Mapping[str, int]], None]) -> None:
        """Call `listener` now and after each change with all levels set here, by Python logger.

        The listener must not call this object.
        """
        with self._lock:
            self._listeners.append(listener)
            listener(dict(self._python_levels))

    def _names(self) -> set[str]:
        loggers = tuple(self._manager.loggerDict)  # a copy: other threads may add loggers
        own = (name for name in loggers if name.startswith("sparkmirror"))
        return {*self._configured, *PYTHON_LOGGERS, *own} - {ROOT}

    def _known(self) -> set[str]:
        return {ROOT, *self._names()}

    def _level(self, name: str) -> LoggerLevel:
        if name in self._configured:
            return self._configured[name]
        for parent in _parents(name):
            if parent in self._configured:
                return LoggerLevel(level=self._configured[parent].level, last_modified_ms=None)
        return LoggerLevel(level=self._python_level(name), last_modified_ms=None)

    def _python_level(self, name: str) -> str:
        number = self._logger(PYTHON_LOGGERS.get(name, (name,))[0]).getEffectiveLevel()
        return next((word for word, level in LEVELS.items() if level <= number), "ALL")

    def _apply(self, name: str, level: str) -> None:
        for logger in PYTHON_LOGGERS.get(name, (name,)):
            self._logger(logger).setLevel(LEVELS[level])
            self._python_levels[logger] = LEVELS[level]

    def _logger(self, name: str) -> logging.Logger:
        return self._manager.root if name == ROOT else self._manager.getLogger(name)


def check_level(level: str) -> str:
    """Return the level in Connect's spelling. Raises NotFound with Connect's message."""
    if level.upper() not in LEVELS:
        raise NotFound(f"invalid log level '{level}'.")
    return level.upper()


def has_loggers(name: str) -> bool:
    """Whether a level of this name can change the lines that are logged."""
    is_own = name in (ROOT, "sparkmirror") or name.startswith("sparkmirror.")
    return is_own or name in PYTHON_LOGGERS or bool(_mapped_names_below(name))


def _mapped_names_below(name: str) -> tuple[str, ...]:
    """Return Java's names below a name; none for root, whose level Python's loggers inherit."""
    return tuple(one for one in PYTHON_LOGGERS if name != ROOT and _is_below(one, name))


def _parents_first(name: str) -> tuple[bool, str]:
    return name != ROOT, name


def _is_below(name: str, parent: str) -> bool:
    return parent == ROOT or name.startswith(f"{parent}.")


def _parents(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name
    yield ROOT
