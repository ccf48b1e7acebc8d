"""The conductor's queries to both clusters: log ranges, topic ids, limits of remote topics.

Blocks; belongs to the conductor's thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkmirror.config.client_configs import WORKER_PRODUCER_PREFIX
from sparkmirror.config.event_hubs_defaults import event_hubs_defaults
from sparkmirror.copy.client_config_resolver import (
    resolve_client,
    resolve_producer_limits,
    resolve_properties,
)
from sparkmirror.copy.producer_limits import ProducerLimits
from sparkmirror.copy.settings import CopySettings
from sparkmirror.errors import ClusterError, ClusterUnavailable, UnsupportedByBroker
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.target_limits import TargetLimits
from sparkmirror.wire.net.leader_calls import ApiResult
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, Router
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.topics.metadata_snapshot import TopicInfo
from sparkmirror.wire.protocol.topics.offsets import (
    EARLIEST,
    LATEST,
    LeaderEpochQuery,
    ListedOffset,
    list_offsets,
    offset_for_leader_epoch,
)
from sparkmirror.wire.protocol.topics.topic_log_config import (
    DEFAULT_MAX_MESSAGE_BYTES,
    TopicLogConfig,
    describe_topic_log_configs,
)

log = logging.getLogger(__name__)

QUERY_TIMEOUT_S = 3.0
"""The limit for partitions without a leader: all others wait as long. They are queried again."""
METADATA_TIMEOUT_S = 5.0
"""After so long without metadata, the partitions that need it get the cluster's error as reason."""
FIRST_METADATA_TIMEOUT_S = 1.0
"""Time for the first metadata of a cluster, before an error tells the operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRange:
    """The readable range of a log.

    With read_committed, `end` is the last stable offset; the log itself ends at `high_watermark`.
    A position between the two is no loss.
    """

    start: int
    end: int
    high_watermark: int
    epoch_end: int | None = None
    """Where the leader epoch of the last copied record ends, if the brokers know it."""


LogRanges = Mapping[TopicPartition, LogRange | ErrorCode]


@dataclass(slots=True)
class ClusterQueries:
    """Queries through one router per cluster."""

    source: Router
    target: Router
    read_committed: bool
    metadata_timeout_s: float = FIRST_METADATA_TIMEOUT_S
    producer: ProducerLimits = ProducerLimits()
    transactional_id: str = ""
    """The longest transactional id of the tasks; empty without transactions."""
    _has_no_configs: bool = False
    """Whether it was said that the target describes no configs."""

    @classmethod
    def create(cls, settings: CopySettings, transactional_id: str = "") -> ClusterQueries:
        """Create the routers; sends no request. Raises ConfigError."""
        target = resolve_properties(settings.target_alias, settings.target)
        if applied := event_hubs_defaults(target):
            log.info(
                "%s is Azure Event Hubs: its producer uses %s, because no config sets these keys",
                settings.target_alias,
                ", ".join(f"{key}={value}" for key, value in applied.items()),
            )
        return cls(
            Router(*resolve_client(settings.source_alias, settings.source, settings.client_id)),
            Router(
                *resolve_client(
                    settings.target_alias,
                    settings.target,
                    settings.client_id,
                    file_prefix=WORKER_PRODUCER_PREFIX,
                )
            ),
            settings.read_committed,
            producer=resolve_producer_limits(settings.target_alias, settings.target),
            transactional_id=transactional_id,
        )

    def find_topics(self, sources: Iterable[str], targets: Iterable[str]) -> None:
        """Refresh the metadata of both clusters and these topics. Raises ClusterError.

        The first call fails soon; each further call doubles the time limit.
        """
        timeout_s, self.metadata_timeout_s = (
            self.metadata_timeout_s,
            min(2 * self.metadata_timeout_s, CALL_TIMEOUT_S),
        )
        errors = [
            error
            for router, topics in ((self.source, sources), (self.target, targets))
            if (error := _refresh_error(router, topics, timeout_s))
        ]
        if errors:
            raise combined_error(errors)

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        self.source.cancel()
        self.target.cancel()

    def close(self) -> None:
        """Close the connections to both clusters."""
        self.source.close()
        self.target.close()

    def source_ranges(self, partitions: Iterable[TopicPartition]) -> LogRanges:
        """Return the readable ranges of source partitions."""
        return _log_ranges(self.source, list(partitions), self.read_committed)

    def target_ends(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int | ErrorCode]:
        """Return the end offsets of remote partitions."""
        listed = _list_offsets(self.target, partitions, LATEST)
        return {p: _offset_or_code(outcome) for p, outcome in listed.items()}

    def target_ranges(self, partitions: Iterable[TopicPartition]) -> LogRanges:
        """Return the ranges of remote partitions; they end at the last stable offset."""
        return _log_ranges(self.target, list(partitions), read_committed=True)

    def offsets_for_time(
        self, partitions: Iterable[TopicPartition], timestamp_ms: int
    ) -> dict[TopicPartition, int | ErrorCode]:
        """Return the first source offset at or after a time; -1 where there is none."""
        listed = _list_offsets(self.source, partitions, timestamp_ms)
        return {p: _offset_or_code(outcome) for p, outcome in listed.items()}

    def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | ErrorCode]:
        """Return where leader epochs of source partitions end; leaves out what brokers do not know.

        A code means that the leader gave no answer now: to ignore it would hide a truncation.
        """
        queries = {partition: LeaderEpochQuery(epoch) for partition, epoch in epochs.items()}
        try:
            ended = offset_for_leader_epoch(self.source, queries, timeout_s=QUERY_TIMEOUT_S)
        except UnsupportedByBroker:
            return {}
        ends: dict[TopicPartition, int | ErrorCode] = {}
        for partition, outcome in ended.items():
            if outcome.value is None:
                if outcome.code.is_retriable:
                    ends[partition] = outcome.code
            elif outcome.value.end_offset >= 0:
                ends[partition] = outcome.value.end_offset
        return ends

    def topic_ids(self, router: Router, topics: Iterable[str]) -> dict[str, str | ErrorCode]:
        """Return topic ids as hex; '' from brokers without topic ids, a code for unknown topics."""
        wanted = set(topics)
        known = router.refresh(wanted, timeout_s=METADATA_TIMEOUT_S)
        return {name: _topic_id_hex(known.topics.get(name)) for name in wanted}

    def target_limits(self, topics: Iterable[str]) -> dict[str, TargetLimits | ErrorCode]:
        """Return the limits of remote topics.

        A target that cannot describe configs is taken to have Kafka's default values.
        """
        wanted = set(topics)
        try:
            described = describe_topic_log_configs(self.target, wanted)
        except UnsupportedByBroker as error:
            self._warn_without_configs(str(error))
            return {name: self._limits(name, TopicLogConfig()) for name in wanted}
        refused = [one.code for one in described.values() if one.code.is_unsupported]
        if refused:
            self._warn_without_configs(f"{self.target.cluster}: DescribeConfigs: {refused[0]}")
        return {
            name: self._limits(name, one.value or TopicLogConfig())
            if one.value or one.code.is_unsupported
            else one.code
            for name, one in described.items()
        }

    def _limits(self, topic: str, config: TopicLogConfig) -> TargetLimits:
        return TargetLimits(
            max_message_bytes=config.max_message_bytes,
            max_produce_bytes=self.producer.max_produce_bytes(
                topic, self.target.client.client_id, self.transactional_id
            ),
            log_append_time=config.log_append_time,
            codecs=self.producer.codecs,
            fallback_codec=self.producer.fallback_codec,
        )

    def _warn_without_configs(self, reason: str) -> None:
        if not self._has_no_configs:
            self._has_no_configs = True
            log.warning(
                "%s. The configs of remote topics are unknown: batches are made for Kafka's"
                " default max.message.bytes, %d; set max.request.size of the target's producer"
                " if the target accepts less",
                reason,
                DEFAULT_MAX_MESSAGE_BYTES,
            )


def combined_error(errors: Sequence[ClusterError]) -> ClusterError:
    """Return one error for the source and the target; one that a retry cannot solve wins."""
    first, *others = sorted(errors, key=lambda error: error.retriable)
    if not others or not first.retriable:
        return first
    text = str(first).removeprefix(f"{first.cluster}: ")
    return ClusterUnavailable(first.cluster, f"{text}; and for target cluster {others[0]}")


def _refresh_error(router: Router, topics: Iterable[str], timeout_s: float) -> ClusterError | None:
    try:
        router.refresh(topics, timeout_s=timeout_s)
    except ClusterError as error:
        return error
    return None


def _log_ranges(
    router: Router, partitions: list[TopicPartition], read_committed: bool
) -> LogRanges:
    starts = _list_offsets(router, partitions, EARLIEST)
    led = [partition for partition in partitions if starts[partition].value]
    highs = _list_offsets(router, led, LATEST)
    ends = _list_offsets(router, led, LATEST, read_committed=True) if read_committed else highs
    ranges: dict[TopicPartition, LogRange | ErrorCode] = {p: starts[p].code for p in partitions}
    for partition in led:
        listed = [outcomes[partition] for outcomes in (starts, ends, highs)]
        failed = [outcome.code for outcome in listed if outcome.value is None]
        if failed:
            ranges[partition] = failed[0]
        else:
            start, end, high = (outcome.value.offset for outcome in listed if outcome.value)
            ranges[partition] = LogRange(start=start, end=end, high_watermark=max(high, end))
    return ranges


def _list_offsets(
    router: Router,
    partitions: Iterable[TopicPartition],
    when: int,
    *,
    read_committed: bool = False,
) -> dict[TopicPartition, ApiResult[ListedOffset]]:
    """List offsets; a partition without a leader fails after the query timeout."""
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
