"""The source connector on real clusters: it finds, creates and syncs topics."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial

import pytest
from kafka.admin import ACLOperation, ResourceType

from sparkmirror.cli.transform.trial import read_last_records, try_transformations
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.acls import create_acls, describe_topic_acls
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.config_resources import incremental_alter_configs
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import NotAuthorized, TopicRejected
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.mirror.topics.acls import AclBinding
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType
from tests.support.connect.connector_context import (
    connector_config,
)
from tests.support.connect.source_connector import (
    REFRESH_TIMEOUT_S,
    explicit_configs,
    started_connector,
)
from tests.support.kafka.admin_operations import grant_acls
from tests.support.kafka.clusters import (
    SharedCluster,
    UniqueName,
    create_topic,
    read_acl,
    write_values,
)
from tests.support.waiting import wait_until


def _partitions(access: ClusterAccess, topic: str) -> int:
    with Admin(access) as admin:
        found = admin.describe_topics([topic])
    return len(found[topic].partitions) if topic in found else 0


def _has_grown(access: ClusterAccess, topic: str, partitions: int) -> bool:
    return _partitions(access, topic) == partitions


def _change(access: ClusterAccess, topic: str, **values: str | None) -> None:
    operations = [
        AlterConfigOp(
            name=name.replace("_", "."),
            operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            value=value,
        )
        for name, value in values.items()
    ]
    router = access.new_router()
    try:
        assert incremental_alter_configs(router, {topic: operations}) == {}
    finally:
        router.close()


def test_remote_topics_are_created_and_partitions_assigned(
    primary: SharedCluster, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    other = unique_name("other")
    with Admin(primary.access) as admin:
        admin.create_topics(
            [
                NewTopic(
                    name=topic,
                    partitions=3,
                    configs={"cleanup.policy": "compact", "min.insync.replicas": "1"},
                ),
                NewTopic(name=other, partitions=1),
                NewTopic(name=f"B.{topic}", partitions=1),
            ]
        )
    config = connector_config(
        "Source", unique_name("c"), primary, backup, topics=f"{topic},B\\.{topic}"
    )
    with started_connector(config) as run:
        assert run.assigned_partitions_by_task(4) == [
            [f"{topic}-0"],
            [f"{topic}-1"],
            [f"{topic}-2"],
        ]
        assert run.assigned_partitions_by_task(2) == [[f"{topic}-0", f"{topic}-2"], [f"{topic}-1"]]
        task = run.connector.task_configs(1)[0]
        assert task == {
            **config,
            "task.assigned.partitions": f"{topic}-0,{topic}-1,{topic}-2",
            "task.index": "0",
        }
    assert _partitions(backup.access, f"A.{topic}") == 3
    assert explicit_configs(backup.access, f"A.{topic}") == {"cleanup.policy": "compact"}
    assert _partitions(backup.access, f"A.{other}") == 0
    assert _partitions(backup.access, f"A.B.{topic}") == 0, "it came from there"
    assert explicit_configs(primary.access, "mm2-offset-syncs.B.internal") == {
        "cleanup.policy": "compact"
    }


def test_routed_topics_are_created_under_their_new_names_and_can_be_tried(
    primary: SharedCluster, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    routed = unique_name("routed")
    create_topic(primary.access, topic, partitions=2, configs={"retention.ms": "7200000"})
    write_values(primary.access, topic, *(b"%d" % number for number in range(9)))
    config = connector_config("Source", unique_name("c"), primary, backup, topics=topic) | {
        "transforms": "r",
        "transforms.r.type": "RegexRouter",
        "transforms.r.regex": rf"A\.{topic}",
        "transforms.r.replacement": routed,
        "errors.tolerance": "all",
        "sparkmirror.errors.deadletterqueue.topic.name": f"failed-{topic}",
        "sparkmirror.errors.deadletterqueue.topic.replication.factor": "1",
    }
    with started_connector(config) as run:
        assert run.assigned_partitions_by_task(1) == [[f"{topic}-0", f"{topic}-1"]]
    assert _partitions(backup.access, routed) == 2
    assert _partitions(backup.access, f"failed-{topic}") == 1, "dead letters have a topic"
    assert explicit_configs(backup.access, routed) == {"retention.ms": "7200000"}
    assert _partitions(backup.access, f"A.{topic}") == 0, "Java's mirror creates it"
    trial = try_transformations(config, topic, read_last_records(config, topic, 3))
    assert [(one.before.value, one.offset) for one in trial.records] == [
        (b"6", 6),
        (b"7", 7),
        (b"8", 8),
    ]
    assert {one.after.topic for one in trial.records if one.after} == {routed}


def test_new_topics_and_partitions_are_found_within_seconds(
    primary: SharedCluster, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    with Admin(primary.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=1))
        config = connector_config("Source", unique_name("c"), primary, backup, topics=f"{topic}.*")
        with started_connector(config) as run:
            before = run.context.reconfiguration_requests
            admin.create_partitions({topic: 2})
            admin.create_topic(NewTopic(name=f"{topic}.late", partitions=1))
            expected = [f"{topic}-0", f"{topic}-1", f"{topic}.late-0"]
            wait_until(
                lambda: run.assigned_partitions_by_task(1) == [expected],
                "both to be found",
                REFRESH_TIMEOUT_S,
            )
            wait_until(
                lambda: run.context.reconfiguration_requests > before,
                "a request for new task configs",
            )
            # The connector knows the partitions before their remote topics exist.
            for remote, count in ((f"A.{topic}", 2), (f"A.{topic}.late", 1)):
                wait_until(
                    partial(_has_grown, backup.access, remote, count),
                    f"{remote}",
                    REFRESH_TIMEOUT_S,
                )


def test_topic_configs_are_synced_except_the_excluded(
    primary: SharedCluster, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    remote = f"A.{topic}"
    with Admin(primary.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=1, configs={"retention.ms": "-1"}))
    config = connector_config(
        "Source",
        unique_name("c"),
        primary,
        backup,
        topics=topic,
        sync_topic_configs_interval_seconds="1",
    )
    with started_connector(config):
        assert explicit_configs(backup.access, remote) == {"retention.ms": "-1"}
        _change(
            primary.access, topic, retention_ms="123456", segment_ms="99999999",
            min_insync_replicas="1", message_timestamp_type="LogAppendTime",
        )  # fmt: skip
        expected: dict[str, str | None] = {"retention.ms": "123456", "segment.ms": "99999999"}
        wait_until(
            lambda: explicit_configs(backup.access, remote) == expected,
            "topic configs to be synced",
        )
        _change(
            backup.access, remote,
            retention_ms="5000000", flush_messages="1000", min_insync_replicas="1",
        )  # fmt: skip
        expected |= {"min.insync.replicas": "1"}
        wait_until(
            lambda: explicit_configs(backup.access, remote) == expected,
            "the topic configs to be corrected",
        )
        _change(primary.access, topic, retention_ms=None)
        del expected["retention.ms"]
        wait_until(
            lambda: explicit_configs(backup.access, remote) == expected,
            "the default to be restored",
        )


def test_offset_syncs_may_be_on_the_target_or_disabled(
    primary: SharedCluster, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    with Admin(primary.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=1))
    config = connector_config("Source", unique_name("c"), primary, backup, topics=topic)
    alias = unique_name("alias").replace(".", "-")
    config |= {"source.cluster.alias": alias, "offset-syncs.topic.location": "target"}
    with started_connector(config):
        assert _partitions(backup.access, f"mm2-offset-syncs.{alias}.internal") == 1
    config |= {"target.cluster.alias": f"{alias}-T", "emit.offset-syncs.enabled": "false"}
    del config["offset-syncs.topic.location"]
    with started_connector(config):
        assert _partitions(primary.access, f"mm2-offset-syncs.{alias}-T.internal") == 0


def test_a_disabled_connector_does_nothing(primary: SharedCluster, backup: SharedCluster) -> None:
    with started_connector(
        connector_config("Source", "c", primary, backup, enabled="false")
    ) as run:
        assert run.assigned_partitions_by_task() == []


def test_a_topic_is_never_copied_onto_itself(
    primary: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    with Admin(primary.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=1))
    config = connector_config(
        "Source",
        unique_name("c"),
        primary,
        primary,
        topics=topic,
        replication_policy_class="IdentityReplicationPolicy",
    )
    with pytest.raises(TopicRejected, match="onto itself"), started_connector(config):
        pass


def test_brokers_auto_create_topics_that_cannot_have_the_configured_replicas(
    primary: SharedCluster,
    cluster_with_authorizer: Cluster,
    topic: str,
    unique_name: UniqueName,
    caplog: pytest.LogCaptureFixture,
) -> None:
    target = SharedCluster(
        name="authorizer", properties=cluster_with_authorizer.client_properties(user="alice")
    )
    with Admin(primary.access) as admin:
        configs = {"retention.ms": "-1"}
        admin.create_topic(NewTopic(name=topic, partitions=3, configs=configs))
    config = connector_config("Source", unique_name("c"), primary, target, topics=topic)
    del config["replication.factor"], config["offset-syncs.topic.replication.factor"]
    config["offset-syncs.topic.location"] = "target"
    with caplog.at_level(logging.INFO), started_connector(config) as run:
        assert len(run.assigned_partitions_by_task(4)) == 3
    assert _partitions(target.access, f"A.{topic}") == 3
    assert explicit_configs(target.access, f"A.{topic}") == {"retention.ms": "-1"}
    assert explicit_configs(target.access, "mm2-offset-syncs.A.internal") == {
        "cleanup.policy": "compact"
    }
    assert "Unable to create topic 'mm2-offset-syncs.A.internal'" in caplog.text
    assert f"Could not create topic A.{topic}." in caplog.text
    assert "replication factor of 2 cannot be reached" in caplog.text


def test_without_auto_creation_the_connector_runs_and_reports_the_missing_topic(
    primary: SharedCluster,
    backup: SharedCluster,
    topic: str,
    unique_name: UniqueName,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Admin(primary.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=1))
    config = connector_config("Source", unique_name("c"), primary, backup, topics=topic)
    config["replication.factor"] = "2"
    with started_connector(config) as run:
        assert run.assigned_partitions_by_task() == [[f"{topic}-0"]]
    assert _partitions(backup.access, f"A.{topic}") == 0
    assert f"Could not create topic A.{topic}." in caplog.text


def test_acls_give_readers_read_access_to_the_remote_topic_and_no_write_access(
    cluster_with_authorizer: Cluster, topic: str, unique_name: UniqueName
) -> None:
    alice = SharedCluster(
        name="authorizer", properties=cluster_with_authorizer.client_properties(user="alice")
    )
    read = read_acl(topic)
    rules = [
        read,
        replace(read, principal="User:dave", operation="ALL"),
        replace(read, principal="User:erin", operation="WRITE"),
        replace(read, principal="User:frank", operation="WRITE", permission="DENY"),
        replace(read, resource_name=topic[:5], pattern_type="PREFIXED"),
    ]
    router = alice.access.new_router()
    with Admin(alice.access) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=1))
    assert create_acls(router, rules) == {}

    def of(name: str) -> set[AclBinding]:
        return {rule for rule in describe_topic_acls(router) or () if rule.resource_name == name}

    wait_until(lambda: len(of(topic)) == 4 and len(of(topic[:5])) == 1, "the rules to hold")
    config = connector_config("Source", unique_name("c"), alice, alice, topics=topic)
    remote = replace(read, resource_name=f"A.{topic}")
    expected = {
        remote,
        replace(remote, principal="User:dave"),
        replace(remote, principal="User:frank", operation="WRITE", permission="DENY"),
    }
    with started_connector(config):
        wait_until(lambda: of(remote.resource_name) >= expected, "ACLs to be synced")
    assert of(remote.resource_name) == expected
    router.close()


def test_a_wrong_password_fails_the_start_at_once(
    cluster_with_authorizer: Cluster, backup: SharedCluster, unique_name: UniqueName
) -> None:
    bob = dict(cluster_with_authorizer.client_properties(user="bob"))
    bob["sasl.jaas.config"] = bob["sasl.jaas.config"].replace("secret-b", "wrong")
    wrong_login = SharedCluster(name="authorizer", properties=bob)
    config = connector_config("Source", unique_name("c"), wrong_login, backup)
    with pytest.raises(NotAuthorized), started_connector(config):
        pass


def test_a_user_without_rights_has_a_problem_that_names_the_missing_rights(
    cluster_with_authorizer: Cluster, backup: SharedCluster, topic: str, unique_name: UniqueName
) -> None:
    create_topic(cluster_with_authorizer.access(user="alice"), topic)
    bob = SharedCluster(
        name="authorizer", properties=cluster_with_authorizer.client_properties(user="bob")
    )
    config = connector_config("Source", unique_name("c"), bob, backup, topics=topic)
    with started_connector(config) as run:
        wait_until(lambda: "syncing topic ACLs" in run.context.problem, "all problems")
        for text in (
            f"A shows no topic, so none matches topics={topic};",
            "internal topic mm2-offset-syncs.B.internal cannot be found or created: A: ",
            "grant Create on the topic (kafka-acls --add --operation Create --topic)",
            "grant Describe on the cluster (kafka-acls --add --operation Describe --cluster)",
        ):
            assert text in run.context.problem
        access = cluster_with_authorizer.access(user="alice")
        grant_acls(access, "bob", ResourceType.TOPIC, topic, ACLOperation.DESCRIBE)
        wait_until(
            lambda: "shows no topic" not in run.context.problem, "the topic", REFRESH_TIMEOUT_S
        )
        assert run.assigned_partitions_by_task() == [[f"{topic}-0"]]
