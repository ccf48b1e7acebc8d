"""MirrorMaker 2's metrics, with the names that Strimzi's rules for the JMX exporter give them.

Every one is a gauge there, counts included. `topic` is the remote topic.
"""

from __future__ import annotations

from typing import Final

from sparkmirror.metrics.definition import Merge, MetricDefinition

_PREFIX: Final = "kafka_connect_mirror_mirror"
_SUFFIXES: Final = {
    "": ("that of the last record", Merge.HIGHEST),
    "_avg": ("the average", Merge.HIGHEST),
    "_min": ("the lowest one", Merge.LOWEST),
    "_max": ("the highest one", Merge.HIGHEST),
}


def _source(attribute: str, doc: str, merge: Merge = Merge.SUM) -> MetricDefinition:
    return MetricDefinition(
        name=f"{_PREFIX}sourceconnector_{attribute}",
        doc=f"{doc} `topic` is the remote topic.",
        labels=("source", "target", "topic"),
        has_partitions=True,
        merge=merge,
    )


def _checkpoint(suffix: str) -> MetricDefinition:
    doc, merge = _SUFFIXES[suffix]
    return MetricDefinition(
        name=f"{_PREFIX}checkpointconnector_checkpoint_latency_ms{suffix}",
        doc=f"Milliseconds from the listing of a group to the write of its checkpoint: {doc}.",
        labels=("source", "target", "group", "topic"),
        has_partitions=True,
        merge=merge,
    )


def _times(attribute: str, doc: str) -> dict[str, MetricDefinition]:
    return {
        suffix: _source(f"{attribute}{suffix}", f"{doc}: {which}.", merge)
        for suffix, (which, merge) in _SUFFIXES.items()
    }


RECORD_COUNT: Final = _source("record_count", "Records copied since the worker started.")
RECORD_RATE: Final = _source("record_rate", "Records copied in a second, over the sample window.")
BYTE_COUNT: Final = _source(
    "byte_count", "Bytes of record batches copied, as they are compressed, since the start."
)
BYTE_RATE: Final = _source(
    "byte_rate", "Bytes of record batches copied in a second, over the sample window."
)
RECORD_AGE: Final = _times(
    "record_age_ms", "Milliseconds from the timestamp of a record to its fetch"
)
REPLICATION_LATENCY: Final = _times(
    "replication_latency_ms", "Milliseconds from the timestamp of a record to its acknowledgement"
)
CHECKPOINT_LATENCY: Final = {suffix: _checkpoint(suffix) for suffix in _SUFFIXES}
"""By the end of the name: the last value has none, the others are of the window."""
