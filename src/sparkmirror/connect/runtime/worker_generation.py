"""The generation of this worker, which every status record has, as in Connect.

Each rebalance of the worker group starts a generation. The leader counts them and starts above all
in the status topic: otherwise statuses of earlier workers would look newer.
"""

from __future__ import annotations

from sparkmirror.store.store_api import StatusBackingStore


class WorkerGeneration:
    """The id of the worker and the number of its generation."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.number = 0

    def start(self, number: int) -> None:
        """Start a generation. The number may be that of the present one."""
        self.number = number


def last_generation(statuses: StatusBackingStore) -> int:
    """Return the highest generation in the status topic; 0 if it has no status."""
    last = 0
    for name in statuses.connectors():
        known = (statuses.connector_status(name), *statuses.task_statuses(name))
        last = max([last, *(status.generation for status in known if status is not None)])
    return last
