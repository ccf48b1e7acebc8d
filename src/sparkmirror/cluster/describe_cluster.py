"""The id and the brokers of a cluster."""

from __future__ import annotations

import time
from dataclasses import dataclass

from sparkmirror.backoff import seconds_left
from sparkmirror.errors import UnsupportedByBroker
from sparkmirror.wire.net.routing import CALL_TIMEOUT_S, AnyBroker, Router
from sparkmirror.wire.protocol.apis import Api
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from sparkmirror.wire.protocol.topics.current_leader import BrokerNode

DESCRIBE_CLUSTER = Api(DescribeClusterRequest, DescribeClusterResponse, range(3))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDescription:
    """A registered broker. A fenced broker serves no clients."""

    node_id: int
    host: str
    port: int
    fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeClusterResult:
    """A cluster's id, controller and brokers, in order of broker id."""

    cluster_id: str
    controller_id: int
    brokers: tuple[BrokerDescription, ...]


def describe_cluster(router: Router, *, timeout_s: float = CALL_TIMEOUT_S) -> DescribeClusterResult:
    """Return the cluster's id and its brokers. Brokers before 2.8 list no fenced brokers."""
    deadline = time.monotonic() + timeout_s
    try:
        answer = router.call(
            DESCRIBE_CLUSTER,
            lambda: DescribeClusterRequest(include_fenced_brokers=True),
            AnyBroker(),
            codes=lambda answer: (answer.error_code,),
            timeout_s=timeout_s,
        )
    except UnsupportedByBroker:
        return _from_metadata(router, seconds_left(deadline))
    code = ErrorCode(answer.error_code)
    if code is not ErrorCode.NONE:
        raise error_for_code(
            router.client.cluster, DESCRIBE_CLUSTER.name, code, answer.error_message
        )
    router.update_brokers(
        BrokerNode(broker.broker_id, broker.host, broker.port, broker.rack)
        for broker in answer.brokers
        if not broker.is_fenced
    )
    brokers = [
        BrokerDescription(
            node_id=broker.broker_id,
            host=broker.host,
            port=broker.port,
            fenced=bool(broker.is_fenced),
        )
        for broker in answer.brokers
    ]
    return DescribeClusterResult(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        brokers=tuple(sorted(brokers, key=lambda broker: broker.node_id)),
    )


def _from_metadata(router: Router, timeout_s: float) -> DescribeClusterResult:
    metadata = router.refresh(timeout_s=timeout_s)
    return DescribeClusterResult(
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        brokers=tuple(
            BrokerDescription(node_id=node_id, host=broker.host, port=broker.port, fenced=False)
            for node_id, broker in sorted(metadata.brokers.items())
        ),
    )
