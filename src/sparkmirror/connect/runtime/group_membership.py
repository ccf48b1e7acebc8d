"""This worker's place in its group, which is a group of one: leader always, owner of everything.

The generation counts what would have been rebalances. It begins after the last one that left a
trace in the status topic, or else what other workers once said would seem newer than what we say.
"""

from __future__ import annotations

from sparkmirror.store.store_api import StatusBackingStore


class GroupMembership:
    """Who we are, and in which generation of the group."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.generation = 0

    def join(self, statuses: StatusBackingStore) -> None:
        """Begin a generation that is newer than all that were written down."""
        last = 0
        for name in statuses.connectors():
            known = (statuses.connector_status(name), *statuses.task_statuses(name))
            last = max([last, *(status.generation for status in known if status is not None)])
        self.generation = last + 1

    def rebalance(self) -> None:
        """Connectors or tasks came or went."""
        self.generation += 1
