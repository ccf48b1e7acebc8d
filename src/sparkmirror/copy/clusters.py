"""The two clusters as the conductor asks them: where logs begin and end, topic ids, topic rules.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.copy.dial import dial
from sparkmirror.copy.settings import Settings
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.codes import Code
from sparkmirror.wire.leadercalls import Outcome
from sparkmirror.wire.metadata import TopicInfo
from sparkmirror.wire.offsets import (
    EARLIEST,
    LATEST,
    EpochQuestion,
    ListedOffset,
    list_offsets,
    offset_for_leader_epoch,
)
from sparkmirror.wire.routing import CALL_TIMEOUT_S, Router
from sparkmirror.wire.target import Target
from sparkmirror.wire.topic_settings import topic_settings

ANSWER_WITHIN_S = 3.0
"""All others wait as long for partitions that nobody leads; these are asked about again later."""
FIRST_PATIENCE_S = 1.0
"""How long a cluster may take to be found before somebody is told that it is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """From where to where a log can be read.

    An open transaction keeps read_committed from reading on at `end`; the log itself goes on up to
    `high_watermark`. A position in between is no loss: whoever read everything before got there.
    """

    start: int
    end: int
    high_watermark: int
    epoch_end: int | None = None
    """Where the leader epoch of the last record copied ends now, if anybody can say."""


Reached = Mapping[TopicPartition, Reach | Code]


@dataclass(slots=True)
class Clusters:
    """Routers to both sides, and the questions a conductor has."""

    source: Router
    target: Router
    read_committed: bool
    patience_s: float = FIRST_PATIENCE_S

    @classmethod
    def dial(cls, settings: Settings) -> Clusters:
        """Make the routers; nothing is asked yet."""
        return cls(
            Router(*dial(settings.source_alias, settings.source, settings.client_id)),
            Router(*dial(settings.target_alias, settings.target, settings.client_id)),
            settings.read_committed,
        )

    def find(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Find both clusters and these topics of theirs, or raise what keeps us from it.

        The first time that is said soon; a slow cluster is given more time whenever it is tried
        again.
        """
        patience_s, self.patience_s = self.patience_s, min(2 * self.patience_s, CALL_TIMEOUT_S)
        self.source.refresh(sources, timeout_s=patience_s)
        self.target.refresh(targets, timeout_s=patience_s)

    def close(self) -> None:
        """Hang up."""
        self.source.close()
        self.target.close()

    def source_reach(self, partitions: Iterable[TopicPartition]) -> Reached:
        """From where to where source partitions can be read."""
        return _reach(self.source, list(partitions), self.read_committed)

    def target_ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | Code]:
        """Where the remote partitions end."""
        listed = _listed(self.target, partitions, LATEST)
        return {p: _value(outcome) for p, outcome in listed.items()}

    def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | Code]:
        """The first source offset at or after a time; -1 where there is none."""
        listed = _listed(self.source, partitions, timestamp_ms)
        return {p: _value(outcome) for p, outcome in listed.items()}

    def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Code]:
        """Where leader epochs of source partitions end, as far as the brokers know.

        A code says that they could not be asked just now: taken for "nobody knows", it would hide
        what was truncated.
        """
        questions = {partition: EpochQuestion(epoch) for partition, epoch in epochs.items()}
        try:
            ended = offset_for_leader_epoch(self.source, questions, timeout_s=ANSWER_WITHIN_S)
        except UnsupportedByBroker:
            return {}
        found: dict[TopicPartition, int | Code] = {}
        for partition, outcome in ended.items():
            if outcome.value is None:
                if outcome.code.is_worth_retrying:
                    found[partition] = outcome.code
            elif outcome.value.end_offset >= 0:
                found[partition] = outcome.value.end_offset
        return found

    def topic_ids(self, side: Router, topics: Iterable[str]) -> dict[str, str | Code]:
        """Ids of topics as hex, empty where brokers give none; a code where one is not known."""
        wanted = set(topics)
        known = side.refresh(wanted)
        return {name: _id(known.topics.get(name)) for name in wanted}

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
    starts = _listed(router, partitions, EARLIEST)
    led = [partition for partition in partitions if starts[partition].value]
    highs = _listed(router, led, LATEST)
    ends = _listed(router, led, LATEST, read_committed=True) if read_committed else highs
    reached: dict[TopicPartition, Reach | Code] = {p: starts[p].code for p in partitions}
    for partition in led:
        listed = [outcomes[partition] for outcomes in (starts, ends, highs)]
        failed = [outcome.code for outcome in listed if outcome.value is None]
        if failed:
            reached[partition] = failed[0]
        else:
            start, end, high = (outcome.value.offset for outcome in listed if outcome.value)
            reached[partition] = Reach(start=start, end=end, high_watermark=max(high, end))
    return reached


def _listed(
    router: Router,
    partitions: Iterable[TopicPartition],
    when: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, Outcome[ListedOffset]]:
    """Look up offsets, without waiting long for a partition that nobody leads."""
    return list_offsets(
        router,
        dict.fromkeys(partitions, when),
        read_committed=read_committed,
        timeout_s=ANSWER_WITHIN_S,
    )


def _id(topic: TopicInfo | None) -> str | Code:
    if topic is None:
        return Code.UNKNOWN_TOPIC_OR_PARTITION
    if topic.topic_id is None:
        return "" if topic.code is Code.NONE else topic.code
    return topic.topic_id.hex


def _value(outcome: Outcome[ListedOffset]) -> int | Code:
    return outcome.code if outcome.value is None else outcome.value.offset
