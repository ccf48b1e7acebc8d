"""This worker's membership in its group. It is the only member: leader, and owner of everything.

The generation counts what would be rebalances in Connect. It starts after the highest generation
in the status topic: otherwise statuses of earlier workers would look newer than this worker's.
"""

from __future__ import annotations

from sparkmirror.store.store_api import StatusBackingStore


class GroupMembership:
    """The worker's id and its generation."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.generation = 0

    def join(self, statuses: StatusBackingStore) -> None:
        """Start a generation that is newer than all in the status topic."""
        last = 0
        for name in statuses.connectors():
            known = (statuses.connector_status(name), *statuses.task_statuses(name))
            last = max([last, *(status.generation for status in known if status is not None)])
        self.generation = last + 1

    def rebalance(self) -> None:
        """Start the next generation: connectors or tasks were added or removed."""
        self.generation += 1
