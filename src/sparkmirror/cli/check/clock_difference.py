"""The difference between the clock of a cluster and the clock of this computer.

The leader of the controllers answers DescribeQuorum with its own time. That needs Kafka 3.3, KRaft,
and the right Describe on the cluster. The answer is exact to about half a round trip.
"""

from __future__ import annotations

import time

from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.routing import AnyBroker, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.kafka_python_messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)

_DESCRIBE_QUORUM = Api(DescribeQuorumRequest, DescribeQuorumResponse, (1, 2))
_METADATA_TOPIC = "__cluster_metadata"
_REQUEST = DescribeQuorumRequest.TopicData


def clock_difference_s(router: Router, *, timeout_s: float) -> float | None:
    """Return by how many seconds the cluster's clock is ahead; None if the cluster does not tell.

    The cluster does not tell if it is older, if it uses ZooKeeper, or without the right.
    """
    before = time.time()
    try:
        answer = router.call(
            _DESCRIBE_QUORUM,
            lambda: DescribeQuorumRequest(
                topics=[
                    _REQUEST(
                        topic_name=_METADATA_TOPIC,
                        partitions=[_REQUEST.PartitionData(partition_index=0)],
                    )
                ]
            ),
            AnyBroker(),
            codes=lambda answer: (answer.error_code,),
            timeout_s=timeout_s,
        )
    except ClusterError:
        return None
    after = time.time()
    times_ms = [
        voter.last_caught_up_timestamp
        for topic in answer.topics
        for partition in topic.partitions
        for voter in partition.current_voters
        if voter.replica_id == partition.leader_id and voter.last_caught_up_timestamp > 0
    ]
    return times_ms[0] / 1000 - (before + after) / 2 if times_ms else None
