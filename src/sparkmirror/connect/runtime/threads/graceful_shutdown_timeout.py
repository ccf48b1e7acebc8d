"""Detects connectors and tasks that do not stop in time.

A check is an action of the herder thread, due after the stop timeout. It never waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from sparkmirror.connect.runtime.threads.herder_thread import HerderThread

log = logging.getLogger(__name__)

CONNECTOR_HUNG: Final = (
    "Connector '%s' failed to properly shut down, has become unresponsive, and may be consuming "
    "external resources. Correct the configuration for this connector or remove the connector. "
    "After fixing the connector, it may be necessary to restart this worker to release any "
    "consumed resources."
)
"""Connect's words."""
TASKS_HUNG: Final = "Graceful stop of tasks of %s failed."


class GracefulShutdownTimeout:
    """Watches one connector and its tasks. Belongs to the herder thread."""

    def __init__(self, connector: str, herder_thread: HerderThread, stop_timeout_s: float) -> None:
        self._connector = connector
        self._herder_thread = herder_thread
        self._stop_timeout_s = stop_timeout_s

    def watch_connector(
        self, has_released: Callable[[], bool], on_hung: Callable[[], None]
    ) -> None:
        """Call `on_hung` after the stop timeout, unless the instance has ended by then."""
        self._check_after(self._stop_timeout_s, has_released, CONNECTOR_HUNG, on_hung)

    def watch_tasks(self, have_stopped: Callable[[], bool], on_hung: Callable[[], None]) -> None:
        """Call `on_hung` after twice the stop timeout: a task group may use one for itself."""
        self._check_after(2 * self._stop_timeout_s, have_stopped, TASKS_HUNG, on_hung)

    def _check_after(
        self, delay_s: float, is_done: Callable[[], bool], line: str, on_hung: Callable[[], None]
    ) -> None:
        self._herder_thread.schedule(delay_s, partial(self._check, is_done, line, on_hung))

    def _check(self, is_done: Callable[[], bool], line: str, on_hung: Callable[[], None]) -> None:
        if not is_done():
            log.error(line, self._connector)
            on_hung()
