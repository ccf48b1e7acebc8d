"""The six clients of one checkpoint task, each with its own properties.

client       used for                                 properties
source       groups of the source                     source.* admin
target       groups of the target                     target.* admin
checkpoints  earlier checkpoints                      target.* consumer
syncs        offset syncs                             source.* or target.* consumer
offsets      run maps                                 the worker's clients
producer     new checkpoints                          the worker's producer
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.config.client_configs import (
    WORKER_PRODUCER_PREFIX,
    ClientType,
    ClusterSide,
    offset_syncs_client_config,
    task_label,
)
from sparkmirror.connect.connectors.checkpoint.checkpoint_config import MirrorCheckpointConfig
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.wire.net.routing import Router


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointClients:
    """Routers of one task. Each connects at its first request."""

    source: Router
    target: Router
    checkpoints: Router
    syncs: Router
    offsets: Router
    producer: Router

    @classmethod
    def create(cls, config: MirrorCheckpointConfig, worker: WorkerClientConfig) -> Self:
        """Create the routers. Raises ConfigError."""
        shared, originals = config.shared, config.shared.originals
        label = task_label(originals)
        syncs = offset_syncs_client_config(originals, ClientType.CONSUMER, label=label)
        syncs_alias = shared.cluster_alias(config.offset_syncs_side)
        target = shared.flow.target
        return cls(
            source=shared.access(ClusterSide.SOURCE).new_router(f"{label}|checkpoint-source-admin"),
            target=shared.access(ClusterSide.TARGET).new_router(f"{label}|checkpoint-target-admin"),
            checkpoints=shared.access(ClusterSide.TARGET, ClientType.CONSUMER).new_router(
                f"{label}|checkpoints-target-consumer"
            ),
            syncs=ClusterAccess.from_properties(syncs_alias, syncs).new_router(syncs["client.id"]),
            offsets=ClusterAccess.from_properties(
                target, worker.offsets_client_properties(originals)
            ).new_router(),
            producer=ClusterAccess.from_properties(
                target,
                worker.producer_properties(originals),
                file_prefix=WORKER_PRODUCER_PREFIX,
            ).new_router(f"connector-producer-{label}"),
        )

    def routers(self) -> Sequence[Router]:
        """Return all routers."""
        return [getattr(self, field.name) for field in fields(self)]

    def close(self) -> None:
        """Close the connections."""
        for router in self.routers():
            router.close()
