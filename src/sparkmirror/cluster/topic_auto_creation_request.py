"""Topics that brokers create on demand, as for a Java producer.

A producer's metadata request for a missing topic makes brokers with `auto.create.topics.enable`
create it with the cluster's defaults. MirrorMaker 2 depends on that where it may not or cannot
create a topic itself.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from functools import partial

from sparkmirror.backoff import seconds_left
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Router
from sparkmirror.wire.protocol.apis import METADATA
from sparkmirror.wire.protocol.kafka_python_messages import MetadataRequest
from sparkmirror.wire.protocol.topics.metadata_snapshot import read_metadata

AUTO_CREATION_TIMEOUT_S = 3.0
"""Brokers with auto-creation have created a topic by then."""
_RETRY_DELAY_S = 0.2


def request_auto_creation(
    router: Router, topics: Collection[str], *, timeout_s: float = CALL_TIMEOUT_S
) -> frozenset[str]:
    """Request metadata that lets brokers create topics. Returns the topics that have leaders.

    Waits up to AUTO_CREATION_TIMEOUT_S for the leaders. Raises ClusterError if no broker responds
    within the timeout.
    """
    deadline = time.monotonic() + timeout_s
    created_until = min(time.monotonic() + AUTO_CREATION_TIMEOUT_S, deadline)
    ready: set[str] = set()
    while waiting := sorted(set(topics) - ready):
        answer = router.call(
            METADATA,
            partial(_auto_creation_request, waiting),
            AnyBroker(),
            codes=lambda answer: (answer.error_code or 0,),
            timeout_s=seconds_left(deadline),
        )
        found = read_metadata(answer)
        ready |= {
            name
            for name, topic in found.topics.items()
            if topic.partitions
            and all(one.leader.node_id in found.brokers for one in topic.partitions.values())
        }
        if time.monotonic() > created_until:
            break
        time.sleep(_RETRY_DELAY_S)
    return frozenset(ready)


def _auto_creation_request(topics: Sequence[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=True,
    )
