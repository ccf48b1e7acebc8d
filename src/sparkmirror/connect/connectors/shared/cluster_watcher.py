"""A connector's lookout: has a look at its clusters now and then, in a thread of its own.

The first look is waited for, so that a connector that has started knows what there is; for a
cluster that is down the thread waits on, and the connector can say why it has no plan yet. What a
cluster says at the first look that will not pass by itself (a wrong password, say) fails the start.

A look is had every few seconds: MirrorMaker 2's refresh intervals are upper bounds here. Where a
look takes long it is had less often, so that looking never takes much of anybody's time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sparkmirror.connect.connector import ConnectorContext
from sparkmirror.connect.connectors.shared.mirror_connector_config import MirrorConnectorConfig
from sparkmirror.connect.connectors.shared.scheduler import Scheduler
from sparkmirror.errors import ClusterError, ClusterTimeout

REFRESH_CHECK_S = 5.0
IDLE_TO_BUSY_RATIO = 50
"""Looking takes at most one part in so many of the time."""
FIRST_REFRESH_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0
_CANCEL_CHECK_S = 0.1


class ClusterWatcher:
    """Calls `look` until it has succeeded once, and then again for as long as that is wanted."""

    def __init__(
        self, kind: str, shared: MirrorConnectorConfig, what: str, look: Callable[[], float]
    ) -> None:
        """`kind` is the connector's class as people know it, `what` the job in log lines.

        `look` returns how many seconds looking took, without what was done about what was seen.
        """
        self._refresh = look
        self._description = what
        self._interval_s: float | None = None
        self._has_refreshed = threading.Event()
        self._failure: ClusterError | None = None
        self._last_error = _no_answer_yet(shared)
        self._next_refresh_at = 0.0
        self._scheduler = Scheduler(
            f"Scheduler for {kind}: {shared.flow}|{shared.name}", connector=shared.name
        )

    @property
    def has_refreshed(self) -> bool:
        """Whether a look has succeeded."""
        return self._has_refreshed.is_set() and self._failure is None

    @property
    def last_error(self) -> ClusterError:
        """What has kept looks from succeeding, to be raised; of interest until one has."""
        return self._last_error.with_traceback(None)

    def refresh_every(self, interval_s: float | None) -> None:
        """Look again at least so often; None means that the first look is enough."""
        self._interval_s = interval_s

    def run_every(self, interval_s: float | None, what: str, run: Callable[[], None]) -> None:
        """Do something else in the same thread, at once and then at intervals."""
        self._scheduler.schedule_repeating(interval_s, what, run)

    def start(self, context: ConnectorContext) -> None:
        """Begin, and wait for the first look; raises what it says that will not pass."""
        every_s = REFRESH_CHECK_S if self._interval_s is None else self._interval_s
        self._scheduler.schedule_repeating(
            min(every_s, REFRESH_CHECK_S), self._description, self._refresh_if_due, first=True
        )
        self._scheduler.start()
        deadline = time.monotonic() + FIRST_REFRESH_TIMEOUT_S
        while not self._has_refreshed.wait(_CANCEL_CHECK_S):
            if context.is_cancelled() or time.monotonic() > deadline:
                return
        if self._failure is not None:
            raise self._failure

    def stop(self) -> bool:
        """End; say whether nothing is under way any more."""
        return self._scheduler.stop(STOP_TIMEOUT_S)

    def _refresh_if_due(self) -> None:
        began = time.monotonic()
        is_first = not self._has_refreshed.is_set()
        if not is_first and (self._interval_s is None or began < self._next_refresh_at):
            return
        try:
            took_s = self._refresh()
        except ClusterError as error:
            self._last_error = error
            if is_first and not error.retriable:
                self._failure = error
                self._has_refreshed.set()
            raise
        self._has_refreshed.set()
        rest_s = min(IDLE_TO_BUSY_RATIO * took_s, self._interval_s or 0.0)
        self._next_refresh_at = time.monotonic() + rest_s - REFRESH_CHECK_S


def _no_answer_yet(shared: MirrorConnectorConfig) -> ClusterError:
    """What is wrong as long as no cluster has refused anything: nobody has answered yet."""
    sides = {"source": shared.flow.source, "target": shared.flow.target}
    names = [
        f"{alias} ({shared.originals.get(f'{side}.cluster.bootstrap.servers', 'no address')})"
        for side, alias in sides.items()
    ]
    return ClusterTimeout(str(shared.flow), f"waiting for first answers of {' and '.join(names)}")
