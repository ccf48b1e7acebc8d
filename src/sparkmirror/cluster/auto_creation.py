"""Topics that brokers create on demand, asked for as a Java producer asks.

A producer's question about a topic that is not there makes brokers with
`auto.create.topics.enable` create it, with the cluster's own defaults. MirrorMaker 2 lives on that
where it may not, or cannot, create a topic itself; people's set-ups depend on it.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import partial

from kafka.protocol.metadata import MetadataRequest

from sparkmirror.wire.messages import METADATA
from sparkmirror.wire.metadata import read_metadata
from sparkmirror.wire.routing import AnyBroker, Router

WITHIN_S = 3.0
"""Brokers that do it have done it by then; the others cannot be told from slow ones."""
_PAUSE_S = 0.2


def let_brokers_create(
    router: Router, topics: Collection[str], *, within_s: float = WITHIN_S
) -> frozenset[str]:
    """Ask about topics in a way that may create them; return those that can be used now."""
    deadline = time.monotonic() + within_s
    ready: set[str] = set()
    while waiting := sorted(set(topics) - ready):
        answer = router.call(
            METADATA,
            partial(_question, waiting),
            AnyBroker(),
            codes=lambda answer: (answer.error_code or 0,),
        )
        found = read_metadata(answer)
        ready |= {
            name
            for name, topic in found.topics.items()
            if topic.partitions
            and all(one.leader.node_id in found.brokers for one in topic.partitions.values())
        }
        if time.monotonic() > deadline:
            break
        time.sleep(_PAUSE_S)
    return frozenset(ready)


def _question(topics: Sequence[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=True,
    )
