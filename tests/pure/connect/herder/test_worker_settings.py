"""What the herder reads from a worker's config."""

from __future__ import annotations

from sparkmirror.config.definition.connector_config_validation import WorkerCapabilities
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.connect.connectors.source.dead_letter_topics import (
    transformation_faults,
)
from sparkmirror.connect.herder.worker_settings import WorkerSettings
from sparkmirror.store import kafka_based_log

PROMISED_S = 10
"""Within which time a change that cannot be stored is answered."""

FILE = {
    "group.id": "connect-cluster",
    "bootstrap.servers": "b:9092",
    "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
}


def settings(**more: str) -> WorkerSettings:
    file_values = FILE | {key.replace("_", "."): value for key, value in more.items()}
    return WorkerSettings.from_config(DISTRIBUTED.parse(file_values), "host:8083", file_values)


def test_defaults_are_connects() -> None:
    usual = settings()
    capabilities = WorkerCapabilities(transformation_faults=transformation_faults)
    assert usual == WorkerSettings(
        worker_id="host:8083", group_id="connect-cluster", capabilities=capabilities
    )
    assert usual.log_prefix == "[Worker clientId=connect-host:8083, groupId=connect-cluster] "


def test_every_setting_is_read_from_the_config() -> None:
    special = settings(
        client_id="me",
        exactly_once_source_support="enabled",
        topic_tracking_enable="false",
        topic_tracking_allow_reset="false",
        task_shutdown_graceful_timeout_ms="1500",
        connector_client_config_override_policy="Allowlist",
        connector_client_config_override_allowlist="acks,linger.ms",
    )
    assert special.capabilities.exactly_once
    assert special.capabilities.override_policy == "Allowlist"
    assert special.capabilities.override_allowlist == ("acks", "linger.ms")
    assert not special.tracks_topics
    assert not special.allows_topic_reset
    assert special.stop_timeout_s == 1.5
    assert special.log_prefix.startswith("[Worker clientId=me, ")


def test_preparing_is_not_enabled() -> None:
    assert not settings(exactly_once_source_support="preparing").capabilities.exactly_once


def test_a_failed_write_answers_with_its_own_cause_before_the_request_times_out() -> None:
    assert kafka_based_log.WRITE_TIMEOUT_S < settings().write_timeout_s < PROMISED_S
