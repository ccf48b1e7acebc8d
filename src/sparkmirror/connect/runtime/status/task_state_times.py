"""For how much of its time each task of this worker was running or paused.

A task's time begins with its first state and ends when it has stopped. The herder thread writes;
any thread may read.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.connect.connector_task_id import ConnectorTaskId
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

_ENDED = frozenset({LifecycleState.UNASSIGNED, LifecycleState.RESTARTING, LifecycleState.DESTROYED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTimeShares:
    """Shares of the time of one task, from 0 to 1."""

    running: float
    paused: float


@dataclass(slots=True)
class _Times:
    """The time of one task so far, by state."""

    began_s: float
    state: LifecycleState
    since_s: float
    seconds: dict[LifecycleState, float] = field(default_factory=dict)

    def share(self, state: LifecycleState, now_s: float) -> float:
        """Return the share of one state; the current one counts at the very start."""
        running_s = now_s - self.since_s if state is self.state else 0.0
        total_s = now_s - self.began_s
        if total_s <= 0:
            return float(state is self.state)
        return (self.seconds.get(state, 0.0) + running_s) / total_s


class TaskStateTimes:
    """The times of all tasks of one worker."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._times: dict[ConnectorTaskId, _Times] = {}

    def on_state(self, connector: str, task: int, state: LifecycleState) -> None:
        """The task has this state from now on."""
        key, now_s = ConnectorTaskId(connector=connector, task=task), self._clock()
        with self._lock:
            times = self._times.get(key)
            if state in _ENDED:
                self._times.pop(key, None)
            elif times is None:
                self._times[key] = _Times(now_s, state, now_s)
            else:
                before_s = times.seconds.get(times.state, 0.0)
                times.seconds[times.state] = before_s + now_s - times.since_s
                times.state, times.since_s = state, now_s

    def shares(self) -> dict[ConnectorTaskId, TaskTimeShares]:
        """Return the shares of all tasks that have not ended."""
        with self._lock:
            now_s = self._clock()
            return {
                key: TaskTimeShares(
                    running=times.share(LifecycleState.RUNNING, now_s),
                    paused=times.share(LifecycleState.PAUSED, now_s),
                )
                for key, times in self._times.items()
            }
