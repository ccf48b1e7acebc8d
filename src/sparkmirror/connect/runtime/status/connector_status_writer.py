"""Writes connector events to the status topic: a running connector's problem is its trace.

A running connector has up to two problems at a time: the one it reported itself, and the error of
its last `task_configs`. A report that changes nothing is not written. Belongs to the herder thread.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass

from sparkmirror.connect.runtime.status.status_writer import STATE_BY_TARGET, StatusWriter
from sparkmirror.copy.partition_problems_by_cause import same_causes
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_statuses import LifecycleState

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _ConnectorState:
    """What is known of one connector."""

    problem: str = ""
    planning_error: str = ""
    running_trace: str | None = None
    """The trace of the last status if that is RUNNING; None in every other state."""

    def trace(self) -> str:
        """Return the trace of a running connector; empty if it has no problem."""
        return "; ".join(text for text in (self.problem, self.planning_error) if text)


class ConnectorStatusWriter:
    """Writes the states of connectors. Belongs to the herder thread."""

    def __init__(self, statuses: StatusWriter) -> None:
        self._statuses = statuses
        self._states: defaultdict[str, _ConnectorState] = defaultdict(_ConnectorState)

    def on_target_state_reached(self, name: str, target: TargetState) -> None:
        """Write RUNNING with the problem that the start has reported, or PAUSED, or STOPPED."""
        state = self._states[name]
        if target is TargetState.STARTED:
            state.planning_error, state.running_trace = "", None
            self._write_running(name)
        else:
            del self._states[name]
            self._statuses.put_connector(name, STATE_BY_TARGET[target])

    def on_problem(self, name: str, problem: str) -> None:
        """Set the problem that the connector reports; an empty text removes it."""
        state = self._states[name]
        before, state.problem = state.problem, problem
        if problem and not same_causes(problem, before):
            log.warning("Connector %s has a problem: %s", name, problem)
        elif before and not problem:
            log.info("Connector %s no longer has the problem: %s", name, before)
        self._write_if_changed(name)

    def on_planning_failed(self, name: str, trace: str) -> None:
        """Set the error of the last `task_configs`; an empty text removes it."""
        self._states[name].planning_error = trace
        self._write_if_changed(name)

    def on_failed(self, name: str, trace: str) -> None:
        """Write FAILED. Problems are not written until the connector runs again."""
        self._states.pop(name, None)
        self._statuses.put_connector(name, LifecycleState.FAILED, trace)

    def on_stopped(self, name: str, *, restarting: bool) -> None:
        """Write UNASSIGNED, and RESTARTING if a restart was requested."""
        self._states.pop(name, None)
        self._statuses.put_connector(name, LifecycleState.UNASSIGNED)
        if restarting:
            self._statuses.put_connector(name, LifecycleState.RESTARTING)

    def on_removed(self, name: str, *, keep_status: bool) -> None:
        """Remove the status; keep it if the connector was not deleted."""
        self._states.pop(name, None)
        if not keep_status:
            self._statuses.remove_connector(name)

    def _write_if_changed(self, name: str) -> None:
        state = self._states[name]
        if state.running_trace is not None and state.running_trace != state.trace():
            self._write_running(name)

    def _write_running(self, name: str) -> None:
        state = self._states[name]
        state.running_trace = state.trace()
        self._statuses.put_connector(name, LifecycleState.RUNNING, state.running_trace or None)
