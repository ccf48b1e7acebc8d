"""Passes the last records of a topic through the transformations of a source connector.

Reads from the source, and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final
from zoneinfo import ZoneInfo

from sparkmirror.cli.transform.query_outcomes import AskSpark, query_outcomes
from sparkmirror.cli.transform.tried_record import TriedRecord
from sparkmirror.cluster.produce_and_consume import ConsumerRecord, read_topic
from sparkmirror.config.client_configs import ClientType, ClusterSide
from sparkmirror.connect.connectors.source.dead_letter_topics import transformation_faults
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.transform_settings import UTC_NAME, default_zone_name
from sparkmirror.mirror.topics.routed_policy import unrouted_policy
from sparkmirror.model import TopicPartition
from sparkmirror.transforms.configuration.connector_transformer import connector_transformer
from sparkmirror.transforms.configuration.error_settings import dead_letter_topic
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.lane_choice import connector_lane
from sparkmirror.transforms.record import KafkaRecord
from sparkmirror.transforms.record_transformer import Outcome
from sparkmirror.transforms.spark_query import spark_query

_ROLE: Final = "transform-try"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What transformations make of records."""

    records: tuple[TriedRecord, ...]
    lane: str
    """How far a mirror would open the records, and why; empty if it would not run."""
    refusals: tuple[str, ...]
    """Why a mirror would refuse the transformations."""


def read_last_records(config: Mapping[str, str], topic: str, last: int) -> list[ConsumerRecord]:
    """Read the last records of a topic, of all its partitions together, oldest first. Blocks.

    Raises ConfigError and ClusterError.
    """
    shared = MirrorSourceConfig.parse(config).shared
    consumer = shared.client_properties(ClusterSide.SOURCE, ClientType.CONSUMER, _ROLE)
    found = read_topic(
        shared.access(ClusterSide.SOURCE, ClientType.CONSUMER, _ROLE),
        topic,
        committed_only=consumer.get("isolation.level") != "read_uncommitted",
        new_topic_wait_s=0.0,
        last=last,
    )
    in_order = sorted(found, key=lambda record: (record.timestamp_ms, record.offset))
    return in_order[-last:]


def try_transformations(
    config: Mapping[str, str],
    topic: str,
    records: Iterable[ConsumerRecord],
    ask: AskSpark | None = None,
) -> Trial:
    """Return what the transformations of a source connector make of records of a source topic.

    `ask` asks Spark about a query; without it a short-lived Spark is started. Raises ConfigError,
    and TransformError for what Java reports when a task starts.
    """
    parsed = MirrorSourceConfig.parse(config)
    policy, source = parsed.shared.policy, parsed.shared.flow.source
    given_topic = unrouted_policy(policy).format_remote_topic(source, topic)
    zone = default_zone_name()
    environment = JavaEnvironment(
        now_ms=time.time_ns() // 1_000_000, zone=UTC if zone == UTC_NAME else ZoneInfo(zone)
    )
    transformer = connector_transformer(config, environment)
    letters = dead_letter_topic(config)
    query = spark_query(config)
    refusals = tuple(fault.message for fault in transformation_faults(config))
    read = list(records)
    before = [
        KafkaRecord(given_topic, one.partition, one.timestamp_ms, one.key, one.value, one.headers)
        for one in read
    ]
    outcomes: Sequence[Outcome] = before
    if not policy.is_heartbeats_topic(topic):
        outcomes = [transformer.transform(one) for one in before]
        if query is not None and read and not refusals:
            offsets = [one.offset for one in read]
            outcomes = query_outcomes(config, offsets, before, ask)
    lane = connector_lane(config)
    return Trial(
        records=tuple(
            TriedRecord(
                source=TopicPartition(topic, one.partition),
                offset=one.offset,
                before=given,
                outcome=outcome,
                dead_letter_topic=letters.name if letters else "",
            )
            for one, given, outcome in zip(read, before, outcomes, strict=True)
        ),
        lane="" if lane is None else str(lane),
        refusals=refusals,
    )
