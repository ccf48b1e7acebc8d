"""The demo's workload, and the checks at its end, on a copy without Spark.

`tests/spark/test_demo.py` runs the whole demo if its files have changed.
"""

from __future__ import annotations

import pytest

from sparkmirror.cli.demo.checks import DemoCheckResult, check_group_offsets, check_topic
from sparkmirror.cli.demo.workload import BATCH_RECORDS, GROUP, DemoWorkload
from sparkmirror.model import TopicPartition
from tests.support.connect.checkpoint_task import run_until_synced, running_checkpoint_task
from tests.support.connect.connector_flow import ConnectorFlow
from tests.support.kafka.batch_writer import BatchWriter, numbered_records
from tests.support.kafka.clusters import SharedCluster
from tests.support.waiting import wait_until

SYNC_AT_ONCE = {
    "sync_group_offsets_enabled": "true",
    "sync_group_offsets_interval_seconds": "0",
    "emit_checkpoints_interval_seconds": "0",
}
PARTITIONS = 2
WITHIN_S, AT_ONCE_S = 60.0, 0.5
"""How long the checks wait for what comes, and for what does not come."""


@pytest.fixture
def flow(primary: SharedCluster, backup: SharedCluster, topic: str) -> ConnectorFlow:
    return ConnectorFlow(name=topic, source=primary, target=backup, topics=topic)


def test_checks_hold_for_a_mirrored_workload_and_for_nothing_less(
    flow: ConnectorFlow, topic: str
) -> None:
    flow.create_topics({topic: PARTITIONS})
    workload = DemoWorkload(flow.source.access, {topic: PARTITIONS})
    workload.start()
    wait_until(lambda: len(workload.committed) == PARTITIONS, "records in every partition")
    workload.stop()
    assert workload.failure is None
    assert all(at % BATCH_RECORDS > 0 for at in workload.committed.values()), "inside of a batch"
    assert not _records(flow, topic, AT_ONCE_S).passed, "nothing is copied yet"
    flow.copy_to_end()
    found = _records(flow, topic, WITHIN_S)
    assert (found.subject, found.passed) == (f"{topic} = A.{topic}", True), found
    assert not _group(flow, workload, AT_ONCE_S).passed, "the group is not synced yet"
    with running_checkpoint_task(flow, GROUP, **SYNC_AT_ONCE) as (task, _):
        run_until_synced(task)
    found = _group(flow, workload, WITHIN_S)
    assert (found.subject, found.passed) == (f"group {GROUP}", True), found
    writer = BatchWriter(flow.target.access)
    writer.write_batches(TopicPartition(f"A.{topic}", 0), numbered_records(range(1)))
    writer.close()
    assert not _records(flow, topic, WITHIN_S).passed, "the target has a record more"


def _records(flow: ConnectorFlow, topic: str, within_s: float) -> DemoCheckResult:
    return check_topic(flow.source.access, topic, flow.target.access, f"A.{topic}", within_s)


def _group(flow: ConnectorFlow, workload: DemoWorkload, within_s: float) -> DemoCheckResult:
    committed, source, target = workload.committed, flow.source.access, flow.target.access
    return check_group_offsets(GROUP, committed, source, target, lambda name: f"A.{name}", within_s)
