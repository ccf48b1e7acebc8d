"""What one task of the worker does: a turn now and then, for as long as it runs.

Checkpoint and heartbeat tasks are written against this; `thread_tasks` runs them.
"""

from __future__ import annotations

from typing import Protocol

from sparkmirror.connect.connector import ExpandedConfig


class PeriodicTask(Protocol):
    """One task's work. One thread calls it, one method at a time.

    An error that may pass by itself is a ClusterError: it is told as a remark, and the turn is
    tried again. Any other error ends the task.
    """

    def start(self) -> None:
        """Get ready; called once, before the first turn, and again if it failed."""
        ...

    def run_due(self) -> None:
        """Do what is due."""
        ...

    def next_run_in_s(self) -> float:
        """How long until something is due."""
        ...

    def current_problem(self) -> str:
        """What does not go well at the moment, for people to read; empty if all is well."""
        ...

    def written_topics(self) -> frozenset[str]:
        """Which topics were written to so far."""
        ...

    def reconfigure(self, config: ExpandedConfig) -> bool:
        """Go on with another config; False if that takes a new beginning."""
        ...

    def close(self) -> None:
        """Let go of everything. Also called if `begin` failed."""
        ...
