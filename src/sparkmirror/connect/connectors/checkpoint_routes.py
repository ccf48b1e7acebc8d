"""The connections of one checkpoint task: six clients, each configured in its own way.

source       the groups that are followed             source.* admin
target       the groups that are written to           target.* admin
checkpoints  what was said before                     target.* consumer
syncs        offset syncs, wherever they lie          source.* or target.* consumer
offsets      exact maps                               the worker's own
producer     what is said                             the worker's producer
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from sparkmirror.cluster.access import Access
from sparkmirror.config.clients import ClientKind, Side, offset_syncs_client, task_label
from sparkmirror.connect.connectors.checkpoint_config import CheckpointConfig
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.wire.routing import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRoutes:
    """Routers of one task. Nothing is connected before it is needed."""

    source: Router
    target: Router
    checkpoints: Router
    syncs: Router
    offsets: Router
    producer: Router

    @classmethod
    def of(cls, config: CheckpointConfig, worker: WorkerSide) -> Self:
        """Make them. Raises ConfigError."""
        shared, originals = config.shared, config.shared.originals
        label = task_label(originals)
        syncs = offset_syncs_client(originals, ClientKind.CONSUMER, label=label)
        syncs_alias = shared.alias(config.offset_syncs_side)
        target = shared.flow.target
        return cls(
            source=shared.access(Side.SOURCE).router(f"{label}|checkpoint-source-admin"),
            target=shared.access(Side.TARGET).router(f"{label}|checkpoint-target-admin"),
            checkpoints=shared.access(Side.TARGET, ClientKind.CONSUMER).router(
                f"{label}|checkpoints-target-consumer"
            ),
            syncs=Access.from_properties(syncs_alias, syncs).router(syncs["client.id"]),
            offsets=Access.from_properties(target, worker.offsets_client(originals)).router(),
            producer=Access.from_properties(target, worker.producer(originals)).router(
                f"connector-producer-{label}"
            ),
        )

    def close(self) -> None:
        """Hang up."""
        for one in fields(self):
            router: Router = getattr(self, one.name)
            router.close()
