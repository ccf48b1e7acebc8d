"""ACLs and configs of topics are listed and changed on a cluster with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pytest

from sparkmirror.cluster.acls import create_acls, describe_topic_acls
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.config_resources import alter_configs, incremental_alter_configs
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import ClusterError, NotAuthorized
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.mirror.topics.acls import AclBinding
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, AlterConfigOpType, ConfigSource
from sparkmirror.wire.net.routing import Router
from tests.support.kafka.clusters import SharedCluster, read_acl
from tests.support.waiting import wait_until


@pytest.fixture
def alice(cluster_with_authorizer: Cluster) -> Iterator[Router]:
    router = cluster_with_authorizer.access(user="alice").new_router()
    yield router
    router.close()


@pytest.fixture
def bob(cluster_with_authorizer: Cluster) -> Iterator[Router]:
    router = cluster_with_authorizer.access(user="bob").new_router()
    yield router
    router.close()


def _explicit_configs(admin: Admin, topic: str) -> dict[str, str | None]:
    found = admin.describe_configs([topic])[topic]
    assert not isinstance(found, ClusterError)
    return {
        entry.name: entry.value
        for entry in found
        if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG
    }


def _wait_for(admin: Admin, topic: str, configs: Mapping[str, str]) -> None:
    """Wait until a broker has these configs: it learns them after the controller."""
    wait_until(lambda: _explicit_configs(admin, topic) == configs, f"{topic} to have {configs}")


def test_created_acls_are_listed_and_may_be_created_again(alice: Router, topic: str) -> None:
    acls = [
        read_acl(topic),
        replace(read_acl(topic), operation="DESCRIBE_CONFIGS", permission="DENY", host="10.0.0.1"),
        replace(read_acl(topic), pattern_type="PREFIXED", operation="ALL"),
    ]
    assert create_acls(alice, acls) == {}
    assert create_acls(alice, acls) == {}

    def found() -> set[AclBinding]:
        return {acl for acl in describe_topic_acls(alice) or () if acl.resource_name == topic}

    wait_until(lambda: found() >= set(acls), "the broker to list the ACLs")
    assert found() == set(acls)


def test_only_the_invalid_acl_is_refused(alice: Router, topic: str) -> None:
    bad = replace(read_acl(topic), principal="no colon")
    refused = create_acls(alice, [read_acl(topic), bad])
    assert refused.keys() == {bad}


def test_a_user_without_rights_can_neither_list_nor_create_acls(bob: Router, topic: str) -> None:
    with pytest.raises(NotAuthorized, match="CLUSTER_AUTHORIZATION_FAILED"):
        describe_topic_acls(bob)
    refused = create_acls(bob, [read_acl(topic)])
    assert isinstance(refused[read_acl(topic)], NotAuthorized)
    denied = incremental_alter_configs(
        bob,
        {
            topic: [
                AlterConfigOp(name="retention.ms", operation=AlterConfigOpType.SET, value="1000")
            ]
        },
    )
    assert isinstance(denied[topic], NotAuthorized)


def test_a_cluster_without_an_authorizer_has_no_acls(primary: SharedCluster) -> None:
    router = primary.access.new_router()
    try:
        assert describe_topic_acls(router) is None
    finally:
        router.close()


def test_only_the_named_configs_are_altered(
    alice: Router, cluster_with_authorizer: Cluster, topic: str
) -> None:
    with Admin(cluster_with_authorizer.access(user="alice")) as admin:
        admin.create_topic(
            NewTopic(
                name=topic,
                partitions=1,
                configs={"retention.ms": "1000", "segment.ms": "5000", "cleanup.policy": "compact"},
            )
        )
        changes = [
            AlterConfigOp(name="retention.ms", operation=AlterConfigOpType.SET, value="2000"),
            AlterConfigOp(name="segment.ms", operation=AlterConfigOpType.DELETE),
        ]
        assert incremental_alter_configs(alice, {topic: changes}) == {}
        _wait_for(admin, topic, {"retention.ms": "2000", "cleanup.policy": "compact"})
        assert alter_configs(alice, {topic: {"segment.ms": "7000"}}) == {}
        _wait_for(admin, topic, {"segment.ms": "7000"})


def test_only_the_topic_with_an_invalid_config_is_refused(
    alice: Router, cluster_with_authorizer: Cluster, topic: str
) -> None:
    other = f"{topic}.other"
    with Admin(cluster_with_authorizer.access(user="alice")) as admin:
        for name in (topic, other):
            admin.create_topic(NewTopic(name=name, partitions=1))
        bad = AlterConfigOp(name="retention.ms", operation=AlterConfigOpType.SET, value="soon")
        good = AlterConfigOp(name="retention.ms", operation=AlterConfigOpType.SET, value="3000")
        refused = incremental_alter_configs(alice, {topic: [bad], other: [good]})
        assert "retention.ms" in str(refused[topic])
        assert refused.keys() == {topic}
        _wait_for(admin, other, {"retention.ms": "3000"})
