"""What the sync of topic configs and ACLs could not do is returned, one text per cause."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pytest

from sparkmirror.cluster.config_resources import TopicConfigs
from sparkmirror.config.warn_once import unrecorded_warnings
from sparkmirror.connect.connectors.source.source_config import MirrorSourceConfig
from sparkmirror.connect.connectors.source.topic_config_and_acl_sync import TopicConfigAndAclSync
from sparkmirror.errors import ClusterError, NotAuthorized, TopicMissing, UnsupportedByBroker
from sparkmirror.mirror.topics.acls import AclBinding
from sparkmirror.mirror.topics.topic_configs import AlterConfigOp, ConfigEntry, ConfigSource
from tests.support.kafka.in_memory_cluster import InMemoryCluster

CONFIG = MirrorSourceConfig.parse(
    {
        "name": "c",
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
    }
)
TOPICS = {"orders": "A.orders", "bills": "A.bills", "mails": "A.mails"}
RETENTION = ConfigEntry(name="retention.ms", value="7", source=ConfigSource.DYNAMIC_TOPIC_CONFIG)


class RefusingCluster(InMemoryCluster):
    """Refuses to alter configs and to create ACLs, unless a test allows it."""

    is_old = False
    topics_are_missing = False
    is_allowed = False
    acls: tuple[AclBinding, ...] | None = ()

    def incremental_alter_configs(
        self, changes: Mapping[str, Sequence[AlterConfigOp]]
    ) -> dict[str, ClusterError]:
        if self.is_old:
            raise UnsupportedByBroker(self.cluster, "too old")
        return self._refuse(changes)

    def alter_configs(self, configs: Mapping[str, Mapping[str, str]]) -> dict[str, ClusterError]:
        return self._refuse(configs)

    def describe_topic_acls(self) -> tuple[AclBinding, ...] | None:
        return self.acls

    def create_acls(self, bindings: Sequence[AclBinding]) -> dict[AclBinding, ClusterError]:
        if self.is_allowed:
            return {}
        return {one: NotAuthorized(self.cluster, "grant Alter on the cluster") for one in bindings}

    def _refuse(self, topics: Mapping[str, object]) -> dict[str, ClusterError]:
        if self.is_allowed:
            return {}
        kind = TopicMissing if self.topics_are_missing else NotAuthorized
        return {topic: kind(self.cluster, f"{topic}: grant AlterConfigs") for topic in topics}


class WithoutApis(InMemoryCluster):
    """A service without the APIs of configs and ACLs."""

    def describe_configs(self, names: Collection[str]) -> dict[str, TopicConfigs | ClusterError]:
        raise UnsupportedByBroker(self.cluster, "no DescribeConfigs")

    def describe_topic_acls(self) -> tuple[AclBinding, ...] | None:
        raise UnsupportedByBroker(self.cluster, "no DescribeAcls")


def clusters() -> tuple[RefusingCluster, RefusingCluster, TopicConfigAndAclSync]:
    source, target = RefusingCluster("A"), RefusingCluster("B")
    source.configs = dict.fromkeys(TOPICS, (RETENTION,))
    return source, target, TopicConfigAndAclSync(CONFIG, source, target)


def test_configs_that_cannot_be_read_or_altered_are_a_problem_until_they_can() -> None:
    source, target, sync = clusters()
    source.unauthorized_topics = {"orders"}
    assert sync.sync_configs(TOPICS) == (
        "configs cannot be read: orders: A: orders is hidden;"
        " configs cannot be altered: A.bills and 1 more topic: B: A.bills: grant AlterConfigs"
    )
    source.unauthorized_topics, target.is_allowed = set(), True
    assert sync.sync_configs(TOPICS) == ""


def test_a_remote_topic_that_does_not_exist_is_no_problem_of_the_sync() -> None:
    _, target, sync = clusters()
    target.topics_are_missing = True
    assert sync.sync_configs(TOPICS) == ""


def test_an_old_target_that_hides_its_configs_is_a_problem_and_a_newer_one_is_not() -> None:
    _, target, sync = clusters()
    target.unauthorized_topics, target.is_allowed = {"A.orders"}, True
    assert sync.sync_configs(TOPICS) == ""
    target.is_old = True
    problem = sync.sync_configs(TOPICS)
    assert problem == "configs cannot be altered: A.orders: B: A.orders is hidden"


def test_acls_that_cannot_be_created_are_a_problem_until_they_can() -> None:
    source, target, sync = clusters()
    source.acls = tuple(_read_acl(topic) for topic in ("orders", "bills"))
    assert sync.sync_acls() == (
        "ACLs cannot be created: A.bills and 1 more topic: B: grant Alter on the cluster"
    )
    target.is_allowed = True
    assert sync.sync_acls() == ""


def test_without_an_authorizer_on_either_side_no_acls_are_synced_and_that_is_no_problem() -> None:
    source, target, sync = clusters()
    source.acls, target.acls = (_read_acl("orders"),), None
    assert sync.sync_acls() == ""
    source.acls, target.acls = None, ()
    assert sync.sync_acls() == ""


def test_a_target_without_the_apis_is_said_once_and_no_problem(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with unrecorded_warnings():
        source, _, _ = clusters()
        sync = TopicConfigAndAclSync(CONFIG, source, WithoutApis("B"))
        for _ in range(2):
            assert sync.sync_configs(TOPICS) == sync.sync_acls() == ""
    said = [record.getMessage() for record in caplog.records]
    assert said == [
        "B: no DescribeConfigs, so no topic configs are synced (A->B)",
        "B: no DescribeAcls, so no topic ACLs are synced (A->B)",
    ]


def _read_acl(topic: str) -> AclBinding:
    return AclBinding(
        resource_type="TOPIC",
        resource_name=topic,
        pattern_type="LITERAL",
        principal="User:alice",
        host="*",
        operation="READ",
        permission="ALLOW",
    )
