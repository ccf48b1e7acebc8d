"""Fences the producers of older tasks before newer tasks start (exactly-once support only).

The number of transactional ids is written to the config topic, so that the next fencing knows all
of them, even if the connector has fewer tasks by then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Protocol

from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)


class ProducerFencer(Protocol):
    """Fences producers of the cluster that records go to."""

    def __call__(self, transactional_ids: Sequence[str], /) -> None:
        """Fence all of them. After the return none can commit. Blocks; raises ClusterError."""
        ...


class ZombieFencing:
    """Fences the producers of a connector's older tasks. Any thread may call it."""

    def __init__(self, configs: ConfigBackingStore, fencer: ProducerFencer, group_id: str) -> None:
        self._configs = configs
        self._fencer = fencer
        self._group_id = group_id
        self._lock = threading.Lock()
        self._connector_locks: dict[str, threading.Lock] = {}

    def __call__(self, connector: str) -> None:
        """Fence, unless it was done since the last set of task configs. Blocks.

        Calls for one connector follow one another: a second round would fence the tasks that have
        started after the first.
        """
        with self._lock:
            connector_lock = self._connector_locks.setdefault(connector, threading.Lock())
        with connector_lock:
            self._fence(connector)

    def _fence(self, connector: str) -> None:
        state = self._configs.snapshot()
        if not state.is_pending_fencing(connector):
            return
        before, now = state.task_count_record(connector), state.task_count(connector)
        # A single task fences its predecessor itself: it uses the same transactional id.
        if before is not None and not before == now == 1:
            ids = [f"{self._group_id}-{connector}-{task}" for task in range(before)]
            log.info("Fencing out %d task producers for connector %s", len(ids), connector)
            self._fencer(ids)
        self._configs.put_task_count_record(connector, now)
