"""From a source connector's config to the job that copies."""

from __future__ import annotations

import json

import pytest

from sparkmirror.connect.connectors.shared.worker_client_config import WorkerClientConfig
from sparkmirror.connect.connectors.source.copy_job_builder import build_job, parse_offset_reset
from sparkmirror.connect.task_group import TaskPlan
from sparkmirror.copy.delivery import DeliveryMode
from sparkmirror.copy.job import (
    CopyJob,
    DataLossPolicy,
    ExistingRecordsPolicy,
    StartMode,
    StartPosition,
)
from sparkmirror.errors import ConfigError
from sparkmirror.model import TopicPartition
from sparkmirror.security.reloaded_properties import ReloadedProperties
from tests.support.connect.task_plans import plan_of_all_tasks
from tests.support.copy.transform_chains import DROP_MARKED, ROUTE_MARKED

CONNECTOR = {
    "name": "mm2-msc",
    "connector.class": "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "a:9092",
    "target.cluster.bootstrap.servers": "b:9092",
}
WORKER = {
    "bootstrap.servers": "w:9092",
    "group.id": "workers",
    "offset.storage.topic": "connect-offsets",
    "config.storage.topic": "connect-configs",
    "status.storage.topic": "connect-status",
    "key.converter": "ByteArray",
    "value.converter": "ByteArray",
}


def _job(
    connector: dict[str, str] | None = None,
    worker: dict[str, str] | None = None,
    assigned: tuple[str, ...] = ("orders-0,orders-2", "orders-1,pay.me-0"),
) -> CopyJob:
    config = {**CONNECTOR, **(connector or {})}
    tasks = tuple(
        {**config, "task.assigned.partitions": text, "task.index": str(number)}
        for number, text in enumerate(assigned)
    )
    plan = plan_of_all_tasks(config, tasks, "mm2-msc")
    return build_job(plan, WorkerClientConfig(properties={**WORKER, **(worker or {})}))


def test_tasks_and_remote_topics_follow_from_the_task_configs() -> None:
    job = _job()
    assert job.tasks == {
        0: (TopicPartition("orders", 0), TopicPartition("orders", 2)),
        1: (TopicPartition("orders", 1), TopicPartition("pay.me", 0)),
    }
    assert job.task_count == 2
    assert job.remote_topics == {"orders": "A.orders", "pay.me": "A.pay.me"}
    assert (job.connector, job.group_id) == ("mm2-msc", "workers")


def test_records_go_to_the_cluster_of_the_workers_producer() -> None:
    """The cluster called target is only for admin work, as in Connect."""
    assert _job().settings.target == {"bootstrap.servers": "w:9092"}
    lent = _job(worker={"producer.security.protocol": "SSL", "security.protocol": "SASL_SSL"})
    assert lent.settings.target == {"bootstrap.servers": "w:9092", "security.protocol": "SSL"}
    override = {"producer.override.bootstrap.servers": "b:9092"}
    assert _job(override).settings.target == {"bootstrap.servers": "b:9092"}


def test_a_job_has_the_values_that_config_providers_have_now_for_the_workers_file() -> None:
    now, values = [0.0], {**WORKER, "producer.sasl.jaas.config": "first"}
    worker = WorkerClientConfig(
        properties=ReloadedProperties(lambda: dict(values), clock=lambda: now[0])
    )
    plan = TaskPlan(connector="mm2-msc", config=CONNECTOR, tasks={}, task_count=0, generation=1)
    first = build_job(plan, worker)
    values["producer.sasl.jaas.config"] = "second"
    now[0] += 60
    second = build_job(plan, worker)
    assert first.settings.target["sasl.jaas.config"] == "first"
    assert second.settings.target["sasl.jaas.config"] == "second"
    assert first != second  # so the restarted tasks get a new driver


def test_offsets_stay_with_the_worker_unless_the_connector_has_its_own_topic() -> None:
    job = _job(worker={"security.protocol": "SSL"})
    assert job.offsets_topic == "connect-offsets"
    assert job.offsets_client == {"bootstrap.servers": "w:9092", "security.protocol": "SSL"}
    own = _job({"offsets.storage.topic": "mine", "producer.override.bootstrap.servers": "b:9092"})
    assert (own.offsets_topic, own.offsets_client) == ("mine", {"bootstrap.servers": "b:9092"})


def test_records_of_one_topic_for_different_topics_are_copied_in_transactions() -> None:
    assert _job(dict(DROP_MARKED)).delivery is DeliveryMode.SEQUENCED
    job = _job({**ROUTE_MARKED, "transaction.boundary": "interval"})
    assert job.delivery is DeliveryMode.EXACTLY_ONCE
    assert job.commit_interval_s == 60
    assert job.remote_topics["orders"] == "A.orders"


def test_a_query_has_the_settings_of_transactions_and_the_routes_beside_it() -> None:
    query = {"sparkmirror.transform.sql": "SELECT * FROM records"}
    strip = {
        "transforms": "strip",
        "transforms.strip.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.strip.regex": "A\\.(.*)",
        "transforms.strip.replacement": "$1",
    }
    job = _job({**query, **strip, "transaction.boundary": "interval"})
    assert job.delivery is DeliveryMode.SEQUENCED, "the driver decides"
    assert job.commit_interval_s == 60
    assert job.settings.transforms == {**query, **strip}
    assert job.policy_topics["orders"] == "A.orders"
    assert _job({**query, "transaction.boundary": "connector"}).commit_interval_s == 0.1


def test_tasks_with_transforms_know_the_topics_of_the_worker() -> None:
    assert _job().settings.internal_topics == ()
    query = {"sparkmirror.transform.sql": "SELECT * FROM records"}
    own = {**query, "offsets.storage.topic": "mine"}
    assert _job(own).settings.internal_topics == (
        *("connect-configs", "connect-offsets", "connect-status", "mine"),
    )


def test_such_transactions_need_the_offsets_topic_on_the_target() -> None:
    elsewhere = {**ROUTE_MARKED, "producer.override.bootstrap.servers": "b:9092,c:9092"}
    with pytest.raises(ConfigError, match="set offsets.storage.topic of the connector"):
        _job(elsewhere)
    assert _job({**elsewhere, "offsets.storage.topic": "mine"}).is_exactly_once
    assert _job(elsewhere, worker={"bootstrap.servers": "x:1, c:9092"}).is_exactly_once


def test_the_source_is_read_as_its_consumer_is_configured() -> None:
    settings = _job(
        {
            "source.cluster.security.protocol": "SSL",
            "consumer.client.rack": "here",
            "source.consumer.client.rack": "there",
            "source.cluster.max.poll.records": "5",
        }
    ).settings
    assert settings.source["security.protocol"] == "SSL"
    assert "max.poll.records" not in settings.source
    assert settings.rack == "there"
    assert settings.client_id == "A->B|mm2-msc|replication-consumer"


@pytest.mark.parametrize(
    ("overrides", "committed_only"),
    [({}, True), ({"consumer.isolation.level": "read_uncommitted"}, False)],
    ids=["default", "asked"],
)
def test_aborted_records_are_left_out_unless_asked_for(
    overrides: dict[str, str], committed_only: bool
) -> None:
    assert _job(overrides).settings.read_committed is committed_only


def test_offset_syncs_are_on_the_source_by_default() -> None:
    syncs = _job({"offset.lag.max": "7"}).syncs
    assert syncs is not None
    assert (syncs.name, syncs.cluster) == ("mm2-offset-syncs.B.internal", "A")
    assert (syncs.client["bootstrap.servers"], syncs.offset_lag_max) == ("a:9092", 7)
    on_target = _job({"offset-syncs.topic.location": "target"}).syncs
    assert on_target is not None
    assert (on_target.name, on_target.cluster) == ("mm2-offset-syncs.A.internal", "B")
    assert on_target.client["bootstrap.servers"] == "b:9092"
    assert _job({"emit.offset-syncs.enabled": "false"}).syncs is None


def test_a_job_is_the_same_after_json() -> None:
    own = {"sparkmirror.on.loss": "skip", "sparkmirror.on.existing": "append"}
    job = _job(own, {"exactly.once.source.support": "enabled"})
    assert CopyJob.from_json(json.loads(json.dumps(job.to_json()))) == job


def test_secrets_are_in_no_repr() -> None:
    secret = 'org.apache.kafka.X required username="u" password="hush";'
    job = _job(
        {"source.cluster.sasl.jaas.config": secret, "producer.override.sasl.jaas.config": secret},
        {"sasl.jaas.config": secret},
    )
    assert "hush" not in repr(job)


def test_the_workers_config_enables_exactly_once() -> None:
    assert _job().delivery is DeliveryMode.SEQUENCED
    enabled = {"exactly.once.source.support": "enabled"}
    assert _job(worker=enabled).delivery is DeliveryMode.EXACTLY_ONCE
    interval = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "2500"}
    assert _job(interval, enabled).commit_interval_s == 2.5
    flushed = _job(
        {"transaction.boundary": "INTERVAL"}, enabled | {"offset.flush.interval.ms": "700"}
    )
    assert flushed.commit_interval_s == 0.7


def test_the_flush_interval_is_the_workers_but_at_most_ten_seconds() -> None:
    assert _job().flush_interval_s == 10
    assert _job(worker={"offset.flush.interval.ms": "5000"}).flush_interval_s == 5


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        ("earliest", StartPosition(at=StartMode.EARLIEST)),
        ("latest", StartPosition(at=StartMode.LATEST)),
        ("none", StartPosition(at=StartMode.EARLIEST)),
        ("by_duration:PT1H", StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=6_400_000)),
        ("by_duration:P1DT1M1S", StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=-76_461_000)),
    ],
    ids=["earliest", "latest", "none", "hour", "days"],
)
def test_auto_offset_reset_sets_the_start_position(reset: str, start: StartPosition) -> None:
    assert parse_offset_reset(reset, now_s=10_000) == start


@pytest.mark.parametrize("reset", ["soon", "by_duration:", "by_duration:P", "by_duration:1h"])
def test_an_unknown_auto_offset_reset_is_rejected(reset: str) -> None:
    with pytest.raises(ConfigError, match=r"auto\.offset\.reset"):
        parse_offset_reset(reset, now_s=0)


def test_sparkmirrors_own_keys_are_validated_too() -> None:
    assert _job({"sparkmirror.on.loss": "restart"}).on_loss is DataLossPolicy.RESTART
    assert _job().on_existing is ExistingRecordsPolicy.ADOPT
    assert _job({"sparkmirror.on.existing": "halt"}).on_existing is ExistingRecordsPolicy.HALT
    assert _job({"sparkmirror.bytes.per.second": "1000"}).settings.bytes_per_s == 500
    for wrong in (
        {"sparkmirror.on.loss": "weep"},
        {"sparkmirror.on.existing": "skip"},
        {"sparkmirror.bytes.per.second": "fast"},
    ):
        with pytest.raises(ConfigError, match="sparkmirror"):
            _job(wrong)


def test_tasks_get_the_transforms_of_the_connector() -> None:
    settings = _job({**DROP_MARKED, "transforms.strip.headers": "pii,other"}).settings
    assert settings.transforms["transforms.strip.headers"] == "pii,other"
    assert settings.chain
    assert settings.chain == _job(dict(settings.transforms)).settings.chain
    assert settings.chain != _job(dict(DROP_MARKED)).settings.chain
    assert settings.chain == _job({**settings.transforms, "errors.tolerance": "all"}).settings.chain
    assert not _job().settings.chain


def test_tasks_get_the_name_before_a_route() -> None:
    route = {
        "transforms": "route",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": r"A\.(o.*)",
        "transforms.route.replacement": "$1-copy",
    }
    job = _job(route)
    assert not job.settings.transforms, "no record need be opened"
    assert job.remote_topics == {"orders": "orders-copy", "pay.me": "A.pay.me"}
    assert job.policy_topics == {"orders": "A.orders"}


def test_heartbeats_are_not_transformed() -> None:
    job = _job(dict(DROP_MARKED), assigned=("orders-0,heartbeats-0", "Z.heartbeats-0,pay.me-0"))
    assert job.untransformed_topics == ("Z.heartbeats", "heartbeats")
    assert job.chain_of("orders") == job.settings.chain
    assert job.chain_of("heartbeats") == job.chain_of("Z.heartbeats") == ""


def test_a_fault_of_the_transforms_is_an_error_of_the_job() -> None:
    with pytest.raises(ConfigError, match="Not a Transformation"):
        _job({"transforms": "rename"})
