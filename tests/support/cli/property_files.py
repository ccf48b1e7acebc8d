"""The properties of a Connect worker, of dedicated flows, and of their connectors."""

from __future__ import annotations

from tests.support.connect.connector_context import connector_config
from tests.support.kafka.clusters import SharedCluster
from tests.support.spark.mirrored_clusters import MirroredClusters

BYTE_ARRAY_CONVERTER = "org.apache.kafka.connect.converters.ByteArrayConverter"
SINGLE_REPLICA = {
    f"{name}.replication.factor": "1"
    for name in ("config.storage", "offset.storage", "status.storage")
}
LONG_SHUTDOWN = {"task.shutdown.graceful.timeout.ms": "120000"}
"""On a busy computer tasks need more than 5 s, the default, to stop."""
SHORT_INTERVALS = {
    "emit.heartbeats.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "refresh.groups.interval.seconds": "5",
    "refresh.topics.interval.seconds": "5",
}
"""Connectors do in seconds what they do in minutes by default."""


def worker_properties(cluster: SharedCluster, group: str) -> dict[str, str]:
    """The properties of a Connect worker whose internal topics are on a cluster."""
    return {
        **cluster.properties,
        "group.id": group,
        "key.converter": BYTE_ARRAY_CONVERTER,
        "value.converter": BYTE_ARRAY_CONVERTER,
        "header.converter": BYTE_ARRAY_CONVERTER,  # the default makes Java change headers
        "config.storage.topic": f"{group}-configs",
        "offset.storage.topic": f"{group}-offsets",
        "status.storage.topic": f"{group}-status",
        "plugin.discovery": "service_load",  # Java starts faster
        "offset.flush.interval.ms": "1000",
        **LONG_SHUTDOWN,
        **SINGLE_REPLICA,
    }


def flow_properties(
    clusters: MirroredClusters, aliases: tuple[str, str], topics: str, groups: str
) -> dict[str, str]:
    """An mm2.properties with one flow."""
    source, target = aliases
    return {
        "clusters": f"{source}, {target}",
        f"{source}.bootstrap.servers": clusters.source.bootstrap,
        f"{target}.bootstrap.servers": clusters.target.bootstrap,
        f"{source}->{target}.enabled": "true",
        f"{source}->{target}.topics": topics,
        f"{source}->{target}.groups": groups,
        "replication.factor": "1",
        **{
            f"{name}.topic.replication.factor": "1"
            for name in ("offset-syncs", "checkpoints", "heartbeats")
        },
        "heartbeats.replication.enabled": "false",
        "plugin.discovery": "service_load",
        "offset.flush.interval.ms": "1000",
        **LONG_SHUTDOWN,
        **SINGLE_REPLICA,
        **SHORT_INTERVALS,
    }


def connector_configs(
    clusters: MirroredClusters, aliases: tuple[str, str], topics: str, groups: str
) -> dict[str, dict[str, str]]:
    """The same flow as three connectors, by name."""
    source, target = aliases
    return {
        f"{source}-{kind}": {
            **connector_config(kind, f"{source}-{kind}", clusters.source, clusters.target),
            "source.cluster.alias": source,
            "target.cluster.alias": target,
            "topics": topics,
            "groups": groups,
            "tasks.max": "2",
            **SHORT_INTERVALS,
        }
        for kind in ("Source", "Checkpoint", "Heartbeat")
    }
