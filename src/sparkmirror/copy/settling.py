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
from sparkmirror.wire.peek import demand, high_watermark
from sparkmirror.wire.producers import describe_producers
from sparkmirror.wire.routing import Router
from sparkmirror.wire.sequence import target_offset_of

COMMITTED_WITHIN_S = 30.0
LOOK_EVERY_S = 0.05


class Superseded(ClusterUnavailable):
    """The broker knows our producer with a higher epoch: somebody else has taken over."""

    retriable = False


def settled_end(router: Router, lease: Lease, expected: int) -> int | None:
    """The target offset up to which our batches are on the target for good; None if unknown.

    `expected` is the next target offset as far as acknowledgements say.
    """
    identity, partition = lease.identity, lease.target
    outcome = describe_producers(router, [partition])[partition]
    demand(router, partition, outcome.code)
    known = (outcome.value or {}).get(identity.producer_id)
    if known is None:
        return None
    if known.epoch > identity.producer_epoch:
        raise Superseded(router.client.cluster, f"another owner has taken over {partition}")
    end = target_offset_of(known.last_sequence, identity.anchor, near=expected) + 1
    deadline = time.monotonic() + COMMITTED_WITHIN_S
    while high_watermark(router, partition) < end:
        if time.monotonic() > deadline:
            raise ClusterTimeout(
                router.client.cluster,
                f"{partition} holds records up to offset {end} that its replicas do not confirm;"
                " check the in-sync replicas of the remote topic",
            )
        time.sleep(LOOK_EVERY_S)
    return end
