"""The two clusters as the conductor asks them: where logs begin and end, topic ids, topic rules.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparkmirror.copy.client_setup import resolve_client
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.leader_calls import ApiResult
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.metadata import TopicInfo
from sparkmirror.wire.protocol.offsets import (
    EARLIEST,
    LATEST,
    LeaderEpochQuery,
    ListedOffset,
    list_offsets,
    offset_for_leader_epoch,
)
from sparkmirror.wire.protocol.topic_log_config import describe_topic_log_configs

QUERY_TIMEOUT_S = 3.0
"""All others wait as long for partitions that nobody leads; these are asked about again later."""
FIRST_METADATA_TIMEOUT_S = 1.0
"""How long a cluster may take to be found before somebody is told that it is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """From where to where a log can be read.

    An open transaction keeps read_committed from reading on at `end`; the log itself goes on up to
    `high_watermark`. A position in between is no loss: whoever read everything before got there.
    """

    start: int
    end: int
    high_watermark: int
    epoch_end: int | None = None
    """Where the leader epoch of the last record copied ends now, if anybody can say."""


LogRanges = Mapping[TopicPartition, LogRange | ErrorCode]


@dataclass(slots=True)
class ClusterQueries:
    """Routers to both sides, and the questions a conductor has."""

    source: Router
    target: Router
    read_committed: bool
    metadata_timeout_s: float = FIRST_METADATA_TIMEOUT_S

    @classmethod
    def create(cls, settings: CopySettings) -> ClusterQueries:
        """Make the routers; nothing is asked yet."""
        return cls(
            Router(*resolve_client(settings.source_alias, settings.source, settings.client_id)),
            Router(*resolve_client(settings.target_alias, settings.target, settings.client_id)),
            settings.read_committed,
        )

    def find_topics(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Find both clusters and these topics of theirs, or raise what keeps us from it.

        The first time that is said soon; a slow cluster is given more time whenever it is tried
        again.
        """
        patience_s, self.metadata_timeout_s = (
            self.metadata_timeout_s,
            min(2 * self.metadata_timeout_s, CALL_TIMEOUT_S),
        )
        self.source.refresh(sources, timeout_s=patience_s)
        self.target.refresh(targets, timeout_s=patience_s)

    def close(self) -> None:
        """Hang up."""
        self.source.close()
        self.target.close()

    def source_ranges(self, partitions: Iterable[TopicPartition]) -> LogRanges:
        """From where to where source partitions can be read."""
        return _log_ranges(self.source, list(partitions), self.read_committed)

    def target_ends(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | ErrorCode]:
        """Where the remote partitions end."""
        listed = _list_offsets(self.target, partitions, LATEST)
        return {p: _offset_or_code(outcome) for p, outcome in listed.items()}

    def offsets_for_time(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | ErrorCode]:
        """The first source offset at or after a time; -1 where there is none."""
        listed = _list_offsets(self.source, partitions, timestamp_ms)
        return {p: _offset_or_code(outcome) for p, outcome in listed.items()}

    def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ErrorCode]:
        """Where leader epochs of source partitions end, as far as the brokers know.

        A code says that they could not be asked just now: taken for "nobody knows", it would hide
        what was truncated.
        """
        questions = {partition: LeaderEpochQuery(epoch) for partition, epoch in epochs.items()}
        try:
            ended = offset_for_leader_epoch(self.source, questions, timeout_s=QUERY_TIMEOUT_S)
        except UnsupportedByBroker:
            return {}
        found: dict[TopicPartition, int | ErrorCode] = {}
        for partition, outcome in ended.items():
            if outcome.value is None:
                if outcome.code.is_retriable:
                    found[partition] = outcome.code
            elif outcome.value.end_offset >= 0:
                found[partition] = outcome.value.end_offset
        return found

    def topic_ids(self, side: Router, topics: Iterable[str]) -> dict[str, str | ErrorCode]:
        """Ids of topics as hex, empty where brokers give none; a code where one is not known."""
        wanted = set(topics)
        known = side.refresh(wanted)
        return {name: _topic_id_hex(known.topics.get(name)) for name in wanted}

    def target_limits(self, topics: Iterable[str]) -> dict[str, TargetLimits | ErrorCode]:
        """What remote topics take."""
        return {
            name: TargetLimits(
                max_message_bytes=outcome.value.max_message_bytes,
                log_append_time=outcome.value.log_append_time,
            )
            if outcome.value
            else outcome.code
            for name, outcome in describe_topic_log_configs(self.target, set(topics)).items()
        }


def _log_ranges(
    router: Router, partitions: list[TopicPartition], read_committed: bool
) -> LogRanges:
    starts = _list_offsets(router, partitions, EARLIEST)
    led = [partition for partition in partitions if starts[partition].value]
    highs = _list_offsets(router, led, LATEST)
    ends = _list_offsets(router, led, LATEST, read_committed=True) if read_committed else highs
    reached: dict[TopicPartition, LogRange | ErrorCode] = {p: starts[p].code for p in partitions}
    for partition in led:
        listed = [outcomes[partition] for outcomes in (starts, ends, highs)]
        failed = [outcome.code for outcome in listed if outcome.value is None]
        if failed:
            reached[partition] = failed[0]
        else:
            start, end, high = (outcome.value.offset for outcome in listed if outcome.value)
            reached[partition] = LogRange(start=start, end=end, high_watermark=max(high, end))
    return reached


def _list_offsets(
    router: Router,
    partitions: Iterable[TopicPartition],
    when: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, ApiResult[ListedOffset]]:
    """Look up offsets, without waiting long for a partition that nobody leads."""
    return list_offsets(
        router,
        dict.fromkeys(partitions, when),
        read_committed=read_committed,
        timeout_s=QUERY_TIMEOUT_S,
    )


def _topic_id_hex(topic: TopicInfo | None) -> str | ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.topic_id is None:
        return "" if topic.error_code is ErrorCode.NONE else topic.error_code
    return topic.topic_id.hex


def _offset_or_code(outcome: ApiResult[ListedOffset]) -> int | ErrorCode:
    return outcome.code if outcome.value is None else outcome.value.offset
