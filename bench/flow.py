"""From where to where one run copies, as every contestant is told it."""

from __future__ import annotations

from dataclasses import dataclass

from sparkmirror.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """One run's errand. `alias` is new for every run, so each finds a target without a trace."""

    source: str
    """The source's brokers, as `bootstrap.servers`."""
    target: str
    topics: tuple[str, ...]
    partitions: int
    """Of each topic."""
    alias: str
    codec: str = "none"
    """What the source's batches are compressed with."""

    def remote_topic(self, topic: str) -> str:
        """The topic's name at the target."""
        return f"{self.alias}.{topic}"

    @property
    def remote_partitions(self) -> list[TopicPartition]:
        """Every partition that is to be filled."""
        return [
            TopicPartition(self.remote_topic(topic), index)
            for topic in self.topics
            for index in range(self.partitions)
        ]
