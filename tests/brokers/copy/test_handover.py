"""A clean hand-over costs nothing: no fence, no offset, whether or not anything was copied."""

from __future__ import annotations

from sparkmirror.model import TopicPartition
from tests.support.flows import Flow
from tests.support.writing import Writer, numbered


def test_three_runs_in_a_row_need_no_takeover(flow: Flow, topic: str, writer: Writer) -> None:
    """The second run copies nothing: its leases end where they began, and are closed too."""
    topics = {topic: 2}
    flow.create(topic, 2)
    for run in range(3):
        if run != 1:
            for number in range(2):
                writer.write(TopicPartition(topic, number), numbered(range(100)))
        with flow.stage(flow.job(topics)) as stage:
            stage.wait_until_caught_up(flow.ends(topics))
            stage.wait(
                "every partition to be leased",
                lambda seen: all(one.state == "leased" for one in seen.partitions.values()),
            )
            stage.drain()
            assert [event.kind for event in stage.snapshot.events] == []
    flow.assert_mirrored(topics, fences=0)
