"""The generation of this worker, which every status record has, as in Connect.

In Connect each rebalance of the worker group starts a generation. A group has one worker here, so
the worker counts: a connector or task that is added or removed starts a generation. The first one
is higher than all in the status topic: otherwise statuses of earlier workers would look newer.
"""

from __future__ import annotations

from sparkmirror.store.store_api import StatusBackingStore


class WorkerGeneration:
    """The id of the worker and the number of its generation."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self.number = 0

    def start_after(self, statuses: StatusBackingStore) -> None:
        """Start a generation that is higher than all in the status topic."""
        last = 0
        for name in statuses.connectors():
            known = (statuses.connector_status(name), *statuses.task_statuses(name))
            last = max([last, *(status.generation for status in known if status is not None)])
        self.number = last + 1

    def rebalance(self) -> None:
        """Start the next generation: connectors or tasks were added or removed."""
        self.number += 1
