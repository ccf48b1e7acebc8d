"""Properties whose placeholders are replaced again when they are read.

For parts that take properties once and build clients with them later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from sparkmirror.config.secrets.variables import find_variables
from sparkmirror.errors import ConfigError

log = logging.getLogger(__name__)

MAX_AGE_S = 1.0
"""Reads within this time see the same values."""


class ReloadedProperties(Mapping[str, str]):
    """A mapping with the values of now. Keeps the last good values while a provider fails."""

    def __init__(
        self,
        read: Callable[[], Mapping[str, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`read` returns all properties. Raises what its first call raises."""
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._values = dict(read())
        self._read_at = clock()
        self._problem = ""

    def __repr__(self) -> str:
        return f"ReloadedProperties({len(self._values)} keys)"

    def __getitem__(self, key: str) -> str:
        return self.latest()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.latest())

    def __len__(self) -> int:
        return len(self.latest())

    def latest(self) -> Mapping[str, str]:
        """Return all values of now. Holds secrets."""
        with self._lock:
            if self._clock() - self._read_at >= MAX_AGE_S:
                self._read_at = self._clock()
                self._reload()
            return self._values

    def _reload(self) -> None:
        try:
            values = dict(self._read())
            _require_resolved(self._values, values)
        except ConfigError as error:
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("The values of before are used: %s", error)
        else:
            self._values, self._problem = values, ""


def _require_resolved(before: Mapping[str, str], values: Mapping[str, str]) -> None:
    """Raise ConfigError if a provider has no value any more for what it had one before."""
    lost = [
        str(variable)
        for key, value in values.items()
        if value != before.get(key)
        for variable in find_variables(value)
    ]
    if lost:
        raise ConfigError.of("", f"no provider has a value for {', '.join(sorted(set(lost)))} now")
