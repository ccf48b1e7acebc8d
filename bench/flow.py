"""The flow of one run: source, target and topics. Every system gets the same values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.transform_chain import TransformChain
from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The flow of one run. Each run has a new `alias`, so that its target topics are new."""

    source: str
    """The source's brokers, as `bootstrap.servers`."""
    target: str
    topics: tuple[str, ...]
    partitions: int
    """The number of partitions of each topic."""
    alias: str
    codec: str = "none"
    """The compression of the source's batches."""
    source_client: Mapping[str, str] = field(default_factory=dict)
    """The security settings of clients of the source."""
    target_client: Mapping[str, str] = field(default_factory=dict)
    chain: TransformChain | None = None
    """The transforms of the flow; None for a flow that cannot have any."""
    tasks: int = 1
    """`tasks.max` in dedicated mode, where the system's own tuning has none."""
    all_connectors: bool = False
    """Whether heartbeats and checkpoints are on: dedicated mode as an operator starts it."""
    epoch_s: float | None = None
    """How long sparkmirror's epochs last in dedicated mode; None for its default."""

    def remote_topic(self, topic: str) -> str:
        """Return the topic's name on the target."""
        return f"{self.alias}.{topic}{self.chain.topic_suffix if self.chain else ''}"

    @property
    def remote_partitions(self) -> list[TopicPartition]:
        """All partitions of the flow's topics on the target."""
        return [
            TopicPartition(self.remote_topic(topic), index)
            for topic in self.topics
            for index in range(self.partitions)
        ]
