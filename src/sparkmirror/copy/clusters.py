"""The two clusters as the conductor asks them: where logs begin and end, topic ids, topic rules.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.copy.dial import dial
from sparkmirror.copy.settings import Settings
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.leadercalls import Outcome
from sparkmirror.wire.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from sparkmirror.wire.routing import Router
from sparkmirror.wire.target import Target
from sparkmirror.wire.topic_settings import topic_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """From where to where a log can be read.

    An open transaction keeps read_committed from reading on at `end`; the log itself goes on up to
    `high_watermark`. A position in between is no loss: whoever read everything before got there.
    """

    start: int
    end: int
    high_watermark: int


Reached = Mapping[TopicPartition, Reach | Code]


@dataclass(slots=True)
class Clusters:
    """Routers to both sides, and the questions a conductor has."""

    source: Router
    target: Router
    read_committed: bool

    @classmethod
    def dial(cls, settings: Settings) -> Clusters:
        """Make the routers; nothing is asked yet."""
        return cls(
            Router(*dial(settings.source_alias, settings.source, settings.client_id)),
            Router(*dial(settings.target_alias, settings.target, settings.client_id)),
            settings.read_committed,
        )

    def close(self) -> None:
        """Hang up."""
        self.source.close()
        self.target.close()

    def source_reach(self, partitions: Iterable[TopicPartition]) -> Reached:
        """From where to where source partitions can be read."""
        return _reach(self.source, list(partitions), self.read_committed)

    def target_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | Code]:
        """Where the remote partitions end."""
        listed = list_offsets(self.target, dict.fromkeys(partitions, LATEST))
        return {p: _value(outcome) for p, outcome in listed.items()}

    def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | Code]:
        """The first source offset at or after a time; -1 where there is none."""
        listed = list_offsets(self.source, dict.fromkeys(partitions, timestamp_ms))
        return {p: _value(outcome) for p, outcome in listed.items()}

    def topic_ids(self, side: Router, topics: Iterable[str]) -> dict[str, str]:
        """Ids of topics as hex, empty where brokers give none."""
        wanted = set(topics)
        known = side.refresh(wanted)
        ids = {name: known.topic_id(name) for name in wanted}
        return {name: topic_id.hex if topic_id else "" for name, topic_id in ids.items()}

    def rules(self, topics: Iterable[str]) -> dict[str, Target | Code]:
        """What remote topics take."""
        return {
            name: Target(
                max_message_bytes=outcome.value.max_message_bytes,
                log_append_time=outcome.value.log_append_time,
            )
            if outcome.value
            else outcome.code
            for name, outcome in topic_settings(self.target, set(topics)).items()
        }


def _reach(router: Router, partitions: list[TopicPartition], read_committed: bool) -> Reached:
    starts = list_offsets(router, dict.fromkeys(partitions, EARLIEST))
    highs = list_offsets(router, dict.fromkeys(partitions, LATEST))
    ends = highs
    if read_committed:
        ends = list_offsets(router, dict.fromkeys(partitions, LATEST), read_committed=True)
    reached: dict[TopicPartition, Reach | Code] = {}
    for partition in partitions:
        listed = [outcomes[partition] for outcomes in (starts, ends, highs)]
        failed = [outcome.code for outcome in listed if outcome.value is None]
        if failed:
            reached[partition] = failed[0]
        else:
            start, end, high = (outcome.value.offset for outcome in listed if outcome.value)
            reached[partition] = Reach(start=start, end=end, high_watermark=max(high, end))
    return reached


def _value(outcome: Outcome[ListedOffset]) -> int | Code:
    return outcome.code if outcome.value is None else outcome.value.offset
