"""May what nobody answered for come again? The leader's memory and its log decide, not a clock."""

from __future__ import annotations

import pytest

from sparkmirror.copy.repeating import Sent, repeatable
from sparkmirror.model import TopicPartition
from sparkmirror.wire.append import append_batch
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import read_header
from sparkmirror.wire.producers import init_producer_id
from sparkmirror.wire.records import build
from tests.support.flows import Flow, remote_name
from tests.support.writing import Writer, numbered


@pytest.mark.parametrize(
    ("is_known", "expected", "verdict"),
    [(True, 0, True), (True, 10, True), (False, 10, True), (False, 0, False)],
    ids=["remembered", "remembered-and-lacking", "forgotten-and-lacking", "forgotten"],
)
def test_only_what_is_recognised_or_certainly_missing_may_come_again(
    flow: Flow, topic: str, is_known: bool, expected: int, verdict: bool
) -> None:
    flow.create(topic)
    remote = TopicPartition(remote_name(topic), 0)
    writer = Writer(flow.target)
    identity = init_producer_id(writer.router)
    batch = memoryview(build(numbered(range(10))))
    producer = Producer(producer_id=identity.producer_id, epoch=identity.epoch)
    append_batch(writer.router, remote, forward(read_header(batch), batch, producer, 0))
    sender = identity.producer_id if is_known else identity.producer_id + 1_000_000
    assert repeatable(writer.router, {remote: Sent(sender, expected)}) == {remote: verdict}
    writer.close()


def test_of_a_topic_that_is_gone_whoever_sends_hears(flow: Flow, topic: str) -> None:
    flow.create(topic)
    gone = TopicPartition(remote_name(f"{topic}.gone"), 0)
    writer = Writer(flow.target)
    assert repeatable(writer.router, {gone: Sent(1, 0)}) == {gone: True}
    writer.close()
