"""Topics as the control plane sees them: as wanted, and as they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create. -1 leaves the number to the brokers' defaults."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)

    def to_kafka_python(self) -> dict[str, Any]:
        """Say it in the client library's words."""
        return {
            "num_partitions": self.partitions,
            "replication_factor": self.replication_factor,
            "configs": dict(self.configs),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitionInfo:
    """One partition and who holds it. `leader` is None while there is none."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    @classmethod
    def from_kafka_python(cls, words: Mapping[str, Any]) -> Self:
        """Read the client library's form."""
        leader = int(words["leader_id"])
        return cls(
            index=int(words["partition_index"]),
            leader=leader if leader >= 0 and not words["error_code"] else None,
            replicas=tuple(int(node) for node in words["replica_nodes"]),
            isr=tuple(int(node) for node in words["isr_nodes"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic that exists. Partitions are in order of their number."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[TopicPartitionInfo, ...]

    @classmethod
    def from_kafka_python(cls, words: Mapping[str, Any]) -> Self:
        """Read the client library's form."""
        partitions = [
            TopicPartitionInfo.from_kafka_python(partition) for partition in words["partitions"]
        ]
        return cls(
            name=str(words["name"]),
            topic_id=str(words.get("topic_id", "")),
            is_internal=bool(words["is_internal"]),
            partitions=tuple(sorted(partitions, key=lambda partition: partition.index)),
        )

    @property
    def has_leaders(self) -> bool:
        """Tell whether every partition can be written to and read."""
        return bool(self.partitions) and all(
            partition.leader is not None for partition in self.partitions
        )
