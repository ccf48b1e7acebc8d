"""Log levels set over REST, passed on to the driver processes of a worker.

The copy code logs in the drivers and their tasks, not in the worker. A level that an operator sets
reaches running drivers at once, and drivers that start later at their start.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from weakref import WeakSet

from sparkmirror.engine.supervisor.driver_supervisor import DriverSupervisor


class DriverLogLevels:
    """The levels of all drivers of a worker. Any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._levels: dict[str, int] = {}
        self._supervisors: WeakSet[DriverSupervisor] = WeakSet()

    def add_driver(self, supervisor: DriverSupervisor) -> None:
        """Give a driver all levels that were set, and those that are set later."""
        with self._lock:
            self._supervisors.add(supervisor)
            if self._levels:
                supervisor.set_log_levels(self._levels)

    def set_levels(self, levels: Mapping[str, int]) -> None:
        """Set Python loggers in all drivers, by name."""
        with self._lock:
            self._levels.update(levels)
            for supervisor in self._supervisors:
                supervisor.set_log_levels(levels)
