"""Builds the copy job from a source connector's config and task configs. Pure.

Of MirrorMaker 2's client keys, these have an effect: the connection keys of both clusters
(`source.*`, `consumer.*`, `producer.override.*` and the worker's `producer.*`),
`isolation.level`, `client.rack`, `auto.offset.reset`, the transaction keys, and what
`copy.producer_limits` reads of the producer. Fetch sizes, batch sizes and `linger.ms` have none:
batches are copied unchanged.
"""

from __future__ import annotations

import enum
import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from sparkmirror.config.client_configs import (
    ClientType,
    ClusterSide,
    client_config,
    connector_label,
    offset_syncs_client_config,
)
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.connect.connectors.shared.mirror_connector_config import MirrorConnectorConfig
from sparkmirror.connect.connectors.shared.typed_config import TypedConfig
from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.connect.connectors.source.dead_letter_topics import require_dead_letter_topic
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.transform_settings import (
    default_zone_name,
    routes_records,
    transform_settings,
)
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.delivery import (
    DEFAULT_TRANSACTION_TIMEOUT_S,
    DeliveryMode,
    TransactionBoundary,
    commit_interval_for,
)
from sparkmirror.copy.job import (
    CopyJob,
    DataLossPolicy,
    ExistingRecordsPolicy,
    OffsetSyncsTopic,
    StartMode,
    StartPosition,
    may_copy_in_transactions,
    routing_job,
)
from sparkmirror.copy.producer_limits import ProducerLimits
from sparkmirror.copy.settings import CopySettings, rate_per_task
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.topics.routed_policy import unrouted_policy
from sparkmirror.mirror.topics.task_assignment import assigned_partitions

log = logging.getLogger(__name__)

ON_LOSS: Final = "sparkmirror.on.loss"
"""What to do when the source has deleted the next offset: halt, skip or restart."""
ON_EXISTING: Final = "sparkmirror.on.existing"
"""What to do with records in a remote partition without a stored offset: adopt, append or halt."""
BYTES_PER_SECOND: Final = "sparkmirror.bytes.per.second"
"""The limit for all tasks of the connector together; 0 means no limit."""

E = TypeVar("E", bound=enum.StrEnum)

_MAX_FLUSH_S = 10.0
_RESET: Final = "auto.offset.reset"
_INTERVAL: Final = "transaction.boundary.interval.ms"
_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def build_job(plan: TaskPlan, worker: WorkerClientConfig) -> CopyJob:
    """Return the job for the engine. Raises ConfigError for invalid values."""
    transforms = transform_settings(plan.config)
    config = MirrorSourceConfig.parse(plan.config)
    originals, shared = plan.config, config.shared
    tasks = {number: assigned_partitions(task) for number, task in plan.tasks.items()}
    topics = sorted({partition.topic for each in tasks.values() for partition in each})
    consumer = client_config(
        originals,
        ClusterSide.SOURCE,
        ClientType.CONSUMER,
        label=connector_label(originals),
        role="replication-consumer",
    )
    remote_topics = {
        topic: shared.policy.format_remote_topic(shared.flow.source, topic) for topic in topics
    }
    if transforms:
        require_dead_letter_topic(config, remote_topics)
    producer = worker.producer_properties(originals)
    ProducerLimits.from_properties(producer)
    job = CopyJob(
        connector=plan.connector,
        group_id=worker.group_id,
        settings=CopySettings(
            source_alias=shared.flow.source,
            target_alias=shared.flow.target,
            source=consumer,
            target=producer,
            connector=plan.connector,
            client_id=consumer["client.id"],
            read_committed=consumer.get("isolation.level") != "read_uncommitted",
            rack=consumer.get("client.rack", ""),
            bytes_per_s=rate_per_task(_bytes_per_s(originals), plan.task_count),
            transforms=transforms,
            transforms_zone=default_zone_name() if transforms else "UTC",
            internal_topics=worker.internal_topics(originals) if transforms else (),
        ),
        offsets_topic=worker.offsets_topic(originals),
        offsets_client=worker.offsets_client_properties(originals),
        remote_topics=remote_topics,
        policy_topics=_policy_topics(shared, topics),
        untransformed_topics=_untransformed_topics(shared, topics),
        tasks=tasks,
        is_shared=True,
        task_count=plan.task_count,
        start=parse_offset_reset(consumer[_RESET], time.time()),
        on_loss=_choice(originals, ON_LOSS, DataLossPolicy, DataLossPolicy.HALT),
        on_existing=_choice(
            originals, ON_EXISTING, ExistingRecordsPolicy, ExistingRecordsPolicy.ADOPT
        ),
        flush_interval_s=min(worker.offset_flush_interval_s, _MAX_FLUSH_S),
        syncs=_syncs(config),
    )
    if worker.is_exactly_once:
        job = replace(job, delivery=DeliveryMode.EXACTLY_ONCE)
    elif routes_records(transforms):
        job = routing_job(job)
    return _with_transactions(job, originals, worker) if may_copy_in_transactions(job) else job


def parse_offset_reset(reset: str, now_s: float) -> StartPosition:
    """Parse `auto.offset.reset`: where partitions without a stored offset start."""
    if reset.startswith(_BY_DURATION):
        age_s = _duration_s(reset.removeprefix(_BY_DURATION))
        return StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=int((now_s - age_s) * 1000))
    match reset.lower():
        case "earliest":
            return StartPosition(at=StartMode.EARLIEST)
        case "latest":
            return StartPosition(at=StartMode.LATEST)
        case "none":
            log.warning(
                "%s=none: partitions without stored offsets start at the earliest offset", _RESET
            )
            return StartPosition(at=StartMode.EARLIEST)
    raise ConfigError.of(
        _RESET, f"{_RESET} {reset} is unknown: use earliest, latest or {_BY_DURATION}PT1H"
    )


def _duration_s(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if not found or not any(found.groups()):
        raise ConfigError.of(
            _RESET, f"{_RESET}: {text} is not a duration; write it like PT1H or P7D"
        )
    return sum(int(found[part] or 0) * weight for part, weight in _SECONDS.items())


def _syncs(config: MirrorSourceConfig) -> OffsetSyncsTopic | None:
    if not config.emits_offset_syncs:
        return None
    originals = config.shared.originals
    topic = config.offset_syncs_topic
    return OffsetSyncsTopic(
        name=topic.name,
        cluster=topic.cluster,
        client=offset_syncs_client_config(
            originals, ClientType.PRODUCER, label=connector_label(originals)
        ),
        offset_lag_max=config.offset_lag_max,
    )


def _policy_topics(shared: MirrorConnectorConfig, topics: Iterable[str]) -> dict[str, str]:
    """The names of remote topics before a route of the transformations, where it changes them."""
    named = {
        topic: unrouted_policy(shared.policy).format_remote_topic(shared.flow.source, topic)
        for topic in topics
    }
    return {
        topic: name
        for topic, name in named.items()
        if name != shared.policy.format_remote_topic(shared.flow.source, topic)
    }


def _untransformed_topics(shared: MirrorConnectorConfig, topics: Iterable[str]) -> tuple[str, ...]:
    """The heartbeats topics: clients read them, and their binary records fit no chain."""
    return tuple(topic for topic in topics if shared.policy.is_heartbeats_topic(topic))


def _choice(config: Mapping[str, str], key: str, choices: type[E], default: E) -> E:
    """Return the choice that a key names."""
    text = config.get(key, default.value)
    try:
        return choices(text)
    except ValueError:
        known = ", ".join(choices)
        raise ConfigError.of(key, f"{key} {text} is unknown: use one of {known}") from None


def _bytes_per_s(config: Mapping[str, str]) -> int:
    text = config.get(BYTES_PER_SECOND, "0")
    if not text.isdecimal():
        raise ConfigError.of(BYTES_PER_SECOND, f"{BYTES_PER_SECOND} {text} is not a whole number")
    return int(text)


def _with_transactions(
    job: CopyJob, config: Mapping[str, str], worker: WorkerClientConfig
) -> CopyJob:
    """Return the job with the settings of transactions; raises BadRequest if it must have them."""
    keys = TypedConfig(SOURCE_ONLY, config)
    boundary = TransactionBoundary(keys.get_string("transaction.boundary").lower())
    if boundary is TransactionBoundary.CONNECTOR and not job.is_exactly_once:
        boundary = TransactionBoundary.POLL  # Spark decides later whether a query needs any
    interval_ms = keys.get_int(_INTERVAL) if config.get(_INTERVAL) else None
    timeout_ms = job.settings.target.get("transaction.timeout.ms", "")
    return replace(
        job,
        commit_interval_s=commit_interval_for(
            boundary,
            interval_ms,
            int(worker.offset_flush_interval_s * 1000),
        ),
        transaction_timeout_s=(
            int(timeout_ms) / 1000 if timeout_ms.isdecimal() else DEFAULT_TRANSACTION_TIMEOUT_S
        ),
    )
