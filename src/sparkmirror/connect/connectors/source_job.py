"""From a source connector's config and task configs to the job that copies. Pure.

Of the original's many client keys these count here: how to reach both clusters (`source.*`,
`consumer.*`, `producer.override.*` and the worker's `producer.*`), `isolation.level`,
`client.rack`, `auto.offset.reset`, and what concerns transactions. Fetch and batch sizes,
lingering and compression do not: batches are passed on as they are.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sparkmirror.config.clients import (
    ClientKind,
    Side,
    client_config,
    connector_label,
    offset_syncs_client,
)
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.connect.connectors.reading import Reading
from sparkmirror.connect.connectors.source_config import SourceConfig
from sparkmirror.connect.connectors.worker_side import WorkerSide
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.delivery import TRANSACTION_TIMEOUT_S, Boundary, Delivery, commit_every_s
from sparkmirror.copy.job import Job, OnLoss, Start, StartAt, SyncsTopic
from sparkmirror.copy.settings import Settings
from sparkmirror.copy.throttle import share
from sparkmirror.errors import ConfigError
from sparkmirror.mirror.tasks import assigned_partitions

log = logging.getLogger(__name__)

ON_LOSS: Final = "sparkmirror.on.loss"
"""What to do when the source no longer holds what comes next: halt, skip or restart."""
BYTES_PER_SECOND: Final = "sparkmirror.bytes.per.second"
"""How much all tasks of the connector together may copy; 0 means as much as they can."""

_LONGEST_FLUSH_S = 10.0
_RESET: Final = "auto.offset.reset"
_TRANSFORMS: Final = "transforms"
_INTERVAL: Final = "transaction.boundary.interval.ms"
_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?)?"
)
_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def job_of(plan: TaskPlan, worker: WorkerSide) -> Job:
    """Say it as the engine takes it. Raises ConfigError for what cannot be meant."""
    _refuse_transforms(plan.config)
    config = SourceConfig.parse(plan.config)
    originals, shared = plan.config, config.shared
    tasks = tuple(assigned_partitions(task) for task in plan.tasks)
    topics = sorted({partition.topic for task in tasks for partition in task})
    consumer = client_config(
        originals,
        Side.SOURCE,
        ClientKind.CONSUMER,
        label=connector_label(originals),
        role="replication-consumer",
    )
    job = Job(
        connector=plan.connector,
        group_id=worker.group_id,
        settings=Settings(
            source_alias=shared.flow.source,
            target_alias=shared.flow.target,
            source=consumer,
            target=worker.producer(originals),
            client_id=consumer["client.id"],
            read_committed=consumer.get("isolation.level") != "read_uncommitted",
            rack=consumer.get("client.rack", ""),
            bytes_per_s=share(_bytes_per_s(originals), len(tasks)),
        ),
        offsets_topic=worker.offsets_topic(originals),
        offsets_client=worker.offsets_client(originals),
        remote_topics={
            topic: shared.policy.format_remote_topic(shared.flow.source, topic) for topic in topics
        },
        tasks=tasks,
        start=start_of(consumer[_RESET], time.time()),
        on_loss=_on_loss(originals),
        flush_every_s=min(worker.flush_s, _LONGEST_FLUSH_S),
        syncs=_syncs(config),
    )
    return _in_transactions(job, originals, worker) if worker.is_exactly_once else job


def start_of(reset: str, now_s: float) -> Start:
    """Where to begin with partitions that nothing is stored of, in a consumer's words."""
    if reset.startswith(_BY_DURATION):
        back_s = _duration_s(reset.removeprefix(_BY_DURATION))
        return Start(at=StartAt.TIMESTAMP, timestamp_ms=int((now_s - back_s) * 1000))
    match reset.lower():
        case "earliest":
            return Start(at=StartAt.EARLIEST)
        case "latest":
            return Start(at=StartAt.LATEST)
        case "none":
            log.warning("%s=none: partitions without stored offsets begin at the earliest", _RESET)
            return Start(at=StartAt.EARLIEST)
    raise ConfigError.of(
        _RESET, f"{_RESET} {reset} is unknown: use earliest, latest or {_BY_DURATION}PT1H"
    )


def _duration_s(text: str) -> int:
    found = _DURATION.fullmatch(text)
    if not found or not any(found.groups()):
        raise ConfigError.of(_RESET, f"{_RESET}: {text} is no duration; write it like PT1H or P7D")
    return sum(int(found[part] or 0) * weight for part, weight in _SECONDS.items())


def _syncs(config: SourceConfig) -> SyncsTopic | None:
    if not config.emits_offset_syncs:
        return None
    originals = config.shared.originals
    topic = config.offset_syncs_topic
    return SyncsTopic(
        name=topic.name,
        cluster=topic.cluster,
        client=offset_syncs_client(
            originals, ClientKind.PRODUCER, label=connector_label(originals)
        ),
        offset_lag_max=config.offset_lag_max,
    )


def _refuse_transforms(config: Mapping[str, str]) -> None:
    """Records that people want changed must not be copied unchanged without a word."""
    named = config.get(_TRANSFORMS, "").strip()
    if named:
        raise ConfigError.of(
            _TRANSFORMS,
            f"{_TRANSFORMS} {named} cannot be run yet: records are copied as they are; take"
            f" {_TRANSFORMS} out of the config to have them so",
        )


def _on_loss(config: Mapping[str, str]) -> OnLoss:
    said = config.get(ON_LOSS, OnLoss.HALT)
    try:
        return OnLoss(said)
    except ValueError:
        words = ", ".join(OnLoss)
        raise ConfigError.of(ON_LOSS, f"{ON_LOSS} {said} is unknown: use one of {words}") from None


def _bytes_per_s(config: Mapping[str, str]) -> int:
    said = config.get(BYTES_PER_SECOND, "0")
    if not said.isdecimal():
        raise ConfigError.of(BYTES_PER_SECOND, f"{BYTES_PER_SECOND} {said} is not a whole number")
    return int(said)


def _in_transactions(job: Job, config: Mapping[str, str], worker: WorkerSide) -> Job:
    keys = Reading(SOURCE_ONLY, config)
    interval_ms = keys.number(_INTERVAL) if config.get(_INTERVAL) else None
    timeout_ms = job.settings.target.get("transaction.timeout.ms", "")
    return replace(
        job,
        delivery=Delivery.EXACTLY_ONCE,
        commit_every_s=commit_every_s(
            Boundary(keys.text("transaction.boundary").lower()),
            interval_ms,
            int(worker.flush_s * 1000),
        ),
        transaction_timeout_s=(
            int(timeout_ms) / 1000 if timeout_ms.isdecimal() else TRANSACTION_TIMEOUT_S
        ),
    )
