"""Settling: the broker doubts a sequence, so what does its log already hold?

A broker that was restarted remembers only the newest batch of a producer, and answers every older
one with OUT_OF_ORDER_SEQUENCE_NUMBER although it is in the log. The leader's own memory tells:
DescribeProducers gives the last sequence it holds for our producer, and the sequence stands for one
target offset. When the high watermark has passed that offset, everything below it is on the target
for good.

Blocks; runs in the background of a task, on a router of its own.
"""

from __future__ import annotations

import time

from sparkmirror.copy.lease import Lease
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable
from sparkmirror.wire.batch.sequence import target_offset_of
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.producer_ids import describe_producers
from sparkmirror.wire.protocol.single_fetch import high_watermark, raise_for_code

HIGH_WATERMARK_TIMEOUT_S = 30.0
POLL_INTERVAL_S = 0.05


class ProducerSuperseded(ClusterUnavailable):
    """The broker knows our producer with a higher epoch: somebody else has taken over."""

    retriable = False


def appended_end(router: Router, lease: Lease, expected: int) -> int | None:
    """The target offset up to which our batches are on the target for good; None if unknown.

    `expected` is the next target offset as far as acknowledgements say.
    """
    identity, partition = lease.identity, lease.target
    outcome = describe_producers(router, [partition])[partition]
    raise_for_code(router, partition, outcome.code)
    known = (outcome.value or {}).get(identity.producer_id)
    if known is None:
        return None
    if known.epoch > identity.producer_epoch:
        raise ProducerSuperseded(router.client.cluster, f"another owner has taken over {partition}")
    end = target_offset_of(known.last_sequence, identity.anchor, near=expected) + 1
    deadline = time.monotonic() + HIGH_WATERMARK_TIMEOUT_S
    while high_watermark(router, partition) < end:
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"{partition} holds records up to offset {end} that its replicas do not confirm;"
                " check the in-sync replicas of the remote topic",
            )
        time.sleep(POLL_INTERVAL_S)
    return end
