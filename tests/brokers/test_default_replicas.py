"""How many replicas the topics of a source connector get if its config does not say it."""

from __future__ import annotations

from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.cluster import Cluster
from tests.support.connect.connector_context import connector_config
from tests.support.connect.source_connector import started_connector
from tests.support.kafka.clusters import SharedCluster, UniqueName, create_topic


def test_remote_topics_have_two_replicas_and_offset_syncs_three_by_default(
    three_broker_cluster: Cluster, topic: str, unique_name: UniqueName
) -> None:
    cluster = SharedCluster(name="three", properties=three_broker_cluster.client_properties())
    create_topic(cluster.access, topic)
    config = connector_config("Source", unique_name("c"), cluster, cluster, topics=topic)
    del config["replication.factor"], config["offset-syncs.topic.replication.factor"]
    with started_connector(config):
        pass
    wanted = {f"A.{topic}": 2, "mm2-offset-syncs.B.internal": 3}
    with Admin(cluster.access) as admin:
        found = admin.describe_topics(wanted)
    replicas = {name: len(found[name].partitions[0].replicas) for name in found}
    assert replicas == wanted
