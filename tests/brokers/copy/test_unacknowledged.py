"""May a batch without a response be sent again? The leader's producer state and log decide."""

from __future__ import annotations

import pytest

from sparkmirror.copy.task.produce.resend_checks import UnacknowledgedSend, find_resendable
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.batch.records import build_batch
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from sparkmirror.wire.protocol.synchronous.synchronous_produce import append_batch
from tests.support.copy.copy_flow import CopyFlow, remote_topic_name
from tests.support.kafka.batch_writer import BatchWriter, numbered_records


@pytest.mark.parametrize(
    ("is_known", "expected", "verdict"),
    [(True, 0, True), (True, 10, True), (False, 10, True), (False, 0, False)],
    ids=["remembered", "remembered-and-lacking", "forgotten-and-lacking", "forgotten"],
)
def test_only_a_batch_that_is_recognised_or_certainly_missing_may_be_sent_again(
    flow: CopyFlow, topic: str, is_known: bool, expected: int, verdict: bool
) -> None:
    flow.create_topic(topic)
    remote = TopicPartition(remote_topic_name(topic), 0)
    writer = BatchWriter(flow.target)
    identity = init_producer_id(writer.router)
    batch = memoryview(build_batch(numbered_records(range(10))))
    producer = BatchProducer(producer_id=identity.producer_id, epoch=identity.epoch)
    append_batch(writer.router, remote, forward_batch(read_header(batch), batch, producer, 0))
    sender = identity.producer_id if is_known else identity.producer_id + 1_000_000
    assert find_resendable(writer.router, {remote: UnacknowledgedSend(sender, expected)}) == {
        remote: verdict
    }
    writer.close()


def test_a_batch_to_a_deleted_topic_may_be_sent_again(flow: CopyFlow, topic: str) -> None:
    flow.create_topic(topic)
    gone = TopicPartition(remote_topic_name(f"{topic}.gone"), 0)
    writer = BatchWriter(flow.target)
    assert find_resendable(writer.router, {gone: UnacknowledgedSend(1, 0)}) == {gone: True}
    writer.close()
