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
from sparkmirror.connect.connectors.flow_config import FlowConfig
from sparkmirror.connect.connectors.scheduler import Scheduler
from sparkmirror.errors import ClusterError, ClusterTimeout

LOOK_EVERY_S = 5.0
LONGEST_SHARE = 50
"""Looking takes at most one part in so many of the time."""
FIRST_LOOK_WITHIN_S = 20.0
STOP_WITHIN_S = 5.0
_PATIENCE_S = 0.1


class Lookout:
    """Calls `look` until it has succeeded once, and then again for as long as that is wanted."""

    def __init__(self, kind: str, shared: FlowConfig, what: str, look: Callable[[], float]) -> None:
        """`kind` is the connector's class as people know it, `what` the job in log lines.

        `look` returns how many seconds looking took, without what was done about what was seen.
        """
        self._look_once = look
        self._what = what
        self._interval_s: float | None = None
        self._has_looked = threading.Event()
        self._failure: ClusterError | None = None
        self._trouble = _still_waiting(shared)
        self._look_again_at = 0.0
        self._scheduler = Scheduler(
            f"Scheduler for {kind}: {shared.flow}|{shared.name}", connector=shared.name
        )

    @property
    def has_looked(self) -> bool:
        """Whether a look has succeeded."""
        return self._has_looked.is_set() and self._failure is None

    @property
    def trouble(self) -> ClusterError:
        """What has kept looks from succeeding, to be raised; of interest until one has."""
        return self._trouble.with_traceback(None)

    def look_again(self, interval_s: float | None) -> None:
        """Look again at least so often; None means that the first look is enough."""
        self._interval_s = interval_s

    def also(self, interval_s: float | None, what: str, run: Callable[[], None]) -> None:
        """Do something else in the same thread, at once and then at intervals."""
        self._scheduler.every(interval_s, what, run)

    def start(self, context: ConnectorContext) -> None:
        """Begin, and wait for the first look; raises what it says that will not pass."""
        every_s = LOOK_EVERY_S if self._interval_s is None else self._interval_s
        self._scheduler.every(min(every_s, LOOK_EVERY_S), self._what, self._look, first=True)
        self._scheduler.start()
        deadline = time.monotonic() + FIRST_LOOK_WITHIN_S
        while not self._has_looked.wait(_PATIENCE_S):
            if context.is_cancelled() or time.monotonic() > deadline:
                return
        if self._failure is not None:
            raise self._failure

    def stop(self) -> bool:
        """End; say whether nothing is under way any more."""
        return self._scheduler.stop(STOP_WITHIN_S)

    def _look(self) -> None:
        began = time.monotonic()
        is_first = not self._has_looked.is_set()
        if not is_first and (self._interval_s is None or began < self._look_again_at):
            return
        try:
            took_s = self._look_once()
        except ClusterError as error:
            self._trouble = error
            if is_first and not error.retriable:
                self._failure = error
                self._has_looked.set()
            raise
        self._has_looked.set()
        rest_s = min(LONGEST_SHARE * took_s, self._interval_s or 0.0)
        self._look_again_at = time.monotonic() + rest_s - LOOK_EVERY_S


def _still_waiting(shared: FlowConfig) -> ClusterError:
    """What is wrong as long as no cluster has refused anything: nobody has answered yet."""
    sides = {"source": shared.flow.source, "target": shared.flow.target}
    names = [
        f"{alias} ({shared.originals.get(f'{side}.cluster.bootstrap.servers', 'no address')})"
        for side, alias in sides.items()
    ]
    return ClusterTimeout(str(shared.flow), f"waiting for first answers of {' and '.join(names)}")
