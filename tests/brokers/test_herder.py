"""The herder on Connect's internal topics: a worker continues where the last one stopped."""

from __future__ import annotations

import pytest

from sparkmirror.connect.herder.herder import ConnectorOffset
from tests.support.connect.in_memory_herder import SOURCE_CONFIG, named_config, poll_until
from tests.support.connect.kafka_herder import running_kafka_herder, worker_config
from tests.support.kafka.clusters import SharedCluster, UniqueName

RUNNING = ("RUNNING", "RUNNING", "RUNNING")


@pytest.mark.parametrize("support", ["disabled", "enabled"])
def test_a_worker_continues_where_the_last_one_stopped(
    backup: SharedCluster, unique_name: UniqueName, support: str
) -> None:
    name = unique_name("herder")
    config = worker_config(backup, name, exactly_once_source_support=support)
    partition = {"cluster": "source", "partition": 0, "topic": "orders"}
    with running_kafka_herder(backup, config, "first:8083") as harness:
        harness.herder.create_connector("c", named_config("c", SOURCE_CONFIG), None)
        harness.herder.create_connector("d", named_config("d", SOURCE_CONFIG), None)
        # the herder has read its own records back
        assert set(harness.herder.connectors()) == {"c", "d"}
        harness.wait_for_states("c", *RUNNING)
        harness.wait_for_states("d", *RUNNING)
        poll_until(lambda: set(harness.herder.active_topics("c")) == {"orders", "payments"}, "used")
        harness.herder.pause_connector("d")
        harness.wait_for_states("d", "PAUSED", "PAUSED", "PAUSED")
        harness.herder.stop_connector("c")
        harness.herder.alter_connector_offsets(
            "c", [ConnectorOffset(partition=partition, offset={"offset": 3})]
        )
        assert harness.herder.connector_offsets("c") == [
            ConnectorOffset(partition=partition, offset={"offset": 3})
        ]
    with running_kafka_herder(backup, config, "second:8083") as harness:
        harness.wait_for_states("c", "STOPPED")
        harness.wait_for_states("d", "PAUSED", "PAUSED", "PAUSED")
        assert harness.herder.connector_status("d").connector.worker_id == "second:8083"
        assert harness.herder.connector_offsets("c") == [
            ConnectorOffset(partition=partition, offset={"offset": 3})
        ]
        harness.herder.resume_connector("c")
        harness.wait_for_states("c", *RUNNING)
        harness.herder.restart_connector_and_tasks("c", include_tasks=True, only_failed=False)
        poll_until(lambda: "restart tasks c [0, 1]" in harness.probe.calls, "restarted")
        harness.wait_for_states("c", *RUNNING)
        harness.herder.delete_connector("d")
        harness.wait_for_states("d")
        harness.herder.reset_active_topics("c")
        poll_until(lambda: harness.herder.active_topics("c") == [], "forgotten")
    with running_kafka_herder(backup, config, "third:8083") as harness:
        assert list(harness.herder.connectors()) == ["c"]
        harness.wait_for_states("c", *RUNNING)
        assert harness.states("d") == []
