"""A clean hand-over costs nothing: no fence, no offset, whether or not anything was copied."""

from __future__ import annotations

from sparkmirror.model import TopicPartition
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter, numbered_records


def test_three_runs_in_a_row_need_no_takeover(
    flow: CopyFlow, topic: str, writer: BatchWriter
) -> None:
    """The second run copies nothing: its leases end where they began, and are closed too."""
    topics = {topic: 2}
    flow.create_topic(topic, 2)
    for run in range(3):
        if run != 1:
            for number in range(2):
                writer.write_batch(TopicPartition(topic, number), numbered_records(range(100)))
        with flow.harness(flow.job(topics)) as stage:
            stage.wait_until_caught_up(flow.source_end_offsets(topics))
            stage.wait_for_snapshot(
                "every partition to be leased",
                lambda seen: all(one.state == "leased" for one in seen.partitions.values()),
            )
            stage.drain()
            assert [event.kind for event in stage.snapshot.events] == []
    flow.assert_mirrored(topics, fences=0)
