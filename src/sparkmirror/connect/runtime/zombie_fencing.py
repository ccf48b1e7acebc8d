"""Producers of older tasks, shut out before newer tasks start (exactly-once support only).

How many transactional ids may exist is written to the config topic, so that whoever comes next
knows whom to fence, even if the connector has fewer tasks by then.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from sparkmirror.store.store_api import ConfigBackingStore

log = logging.getLogger(__name__)


class ProducerFencer(Protocol):
    """Shuts producers out of the cluster that records go to."""

    def __call__(self, transactional_ids: Sequence[str], /) -> None:
        """Fence them all; returns when none of them can commit any more, or raises."""
        ...


class ZombieFencing:
    """Fences what is left of a connector's older tasks. Any thread may call it."""

    def __init__(self, configs: ConfigBackingStore, fence: ProducerFencer, group_id: str) -> None:
        self._configs = configs
        self._fencer = fence
        self._group_id = group_id

    def __call__(self, connector: str) -> None:
        """Fence unless that was done since the last set of task configs."""
        state = self._configs.snapshot()
        if not state.is_pending_fencing(connector):
            return
        before, now = state.task_count_record(connector), state.task_count(connector)
        # A lone task shuts out its predecessor by itself, when it takes over the same id.
        if before is not None and not before == now == 1:
            ids = [f"{self._group_id}-{connector}-{task}" for task in range(before)]
            log.info("Fencing out %d task producers for connector %s", len(ids), connector)
            self._fencer(ids)
        self._configs.put_task_count_record(connector, now)
