"""While a broker is down, its partitions have the cause as reason, and no longer.

The tests wait longer than an operator would, because a busy computer is slow. They log how long it
took. `test_faults_brokers` has the target of one broker.
"""

from __future__ import annotations

from sparkmirror.copy.snapshot import CopySnapshot
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.model import TopicPartition
from tests.brokers.copy.conftest import flow_between
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.copy.partition_views import is_caught_up, wait_for_views
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import UniqueName
from tests.support.kafka.wire_copier import make_router


def test_an_unreachable_source_is_a_reason_and_its_ends_are_unknown(
    flow: CopyFlow, topic: str, writer: BatchWriter, source: Cluster
) -> None:
    flow.create_topic(topic)
    writer.write_batch(TopicPartition(topic, 0), numbered_records(range(10)))
    with flow.harness(flow.job({topic: 1})) as harness:
        wait_for_views(harness, "everything copied", is_caught_up)
        source.kill_broker(1)
        try:
            cause = f"source: source: PLAINTEXT {source.bootstrap_servers()}: connection refused"
            wait_for_views(harness, "the cause is shown", lambda view: cause in view.reason)
            wait_for_views(harness, "the end is unknown", lambda view: view.end == -1)
        finally:
            source.start_broker(1)
        wait_for_views(harness, "all is well", is_caught_up)


def test_one_broker_of_several_is_a_reason_of_its_own_partitions_only(
    source: Cluster, three_broker_cluster: Cluster, topic: str, unique_name: UniqueName
) -> None:
    flow = flow_between(unique_name("flow"), source, three_broker_cluster)
    flow.create_topic(topic, 6)
    leaders = remote_leaders(flow, topic, 6)
    offsets_leader = remote_leaders(flow, "", 1)[0]
    down = next(node for node in leaders.values() if node != offsets_leader)
    with flow.harness(flow.job({topic: 6})) as harness:
        wait_for_views(harness, "all are leased", is_caught_up)
        three_broker_cluster.kill_broker(down)
        try:

            def only_its_partitions(seen: CopySnapshot) -> bool:
                return all(
                    ("connection refused" in seen.partitions[f"{topic}-{number}"].reason)
                    == (leader == down)
                    for number, leader in leaders.items()
                )

            harness.wait_for_snapshot("the reason of its partitions", only_its_partitions)
            # Later the cluster itself knows that the broker is gone.
            harness.wait_for_snapshot(
                "the missing leader",
                lambda seen: (
                    only_its_partitions(seen)
                    and any("has no leader" in view.reason for view in seen.partitions.values())
                ),
            )
        finally:
            three_broker_cluster.start_broker(down)
        wait_for_views(harness, "all is well", is_caught_up)


def remote_leaders(flow: CopyFlow, topic: str, partitions: int) -> dict[int, int]:
    """The leaders of the remote partitions of a topic; of the offsets topic without a name."""
    name = remote_topic_name(topic) if topic else flow.offsets_topic
    router = make_router(flow.target)
    try:
        known = router.refresh([name])
    finally:
        router.close()
    leaders = {}
    for number in range(partitions):
        leader = known.leader_of(TopicPartition(name, number))
        assert leader
        leaders[number] = leader.node_id
    return leaders
