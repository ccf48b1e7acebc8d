"""Creates topics and fills them with batches of exactly one size."""

from __future__ import annotations

from bench.workloads import Workload
from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.errors import LabError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_SEQUENCE, read_header
from sparkmirror.wire.batch.lanes.forward import BatchProducer, forward_batch
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import ClientConfig
from sparkmirror.wire.net.routing import LeaderOf, Router
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request, produce_version
from sparkmirror.wire.protocol.topics.offsets import LATEST, list_offsets

_WRITE_S = 60.0


def create_topic(access: ClusterAccess, name: str, partitions: int) -> None:
    """Create a topic, and wait until the leaders of its partitions answer."""
    with Admin(access) as admin:
        admin.create_topic(NewTopic(name=name, partitions=partitions))
    router = make_router(access)
    try:
        list_offsets(router, {TopicPartition(name, index): LATEST for index in range(partitions)})
    finally:
        router.close()


def fill_topic(access: ClusterAccess, topic: str, workload: Workload, partitions: int) -> int:
    """Create a topic and fill it with batches of a workload; return its number of records.

    Requires a cluster of one broker.
    """
    create_topic(access, topic, partitions)
    return add_records(access, topic, workload, partitions)


def add_records(access: ClusterAccess, topic: str, workload: Workload, partitions: int) -> int:
    """Write the batches of a workload to a topic; return their number of records.

    Requires a cluster of one broker.
    """
    router = make_router(access)
    try:
        write_batches(router, topic, workload, partitions)
    finally:
        router.close()
    return workload.total(partitions)


def make_router(access: ClusterAccess) -> Router:
    """Return a new router, for use by this thread only."""
    client = ClientConfig(cluster=access.cluster, security=access.security)
    return Router(client, [Address(*address) for address in access.bootstrap_servers])


def write_batches(router: Router, topic: str, workload: Workload, partitions: int) -> None:
    """Append the batches of a workload to the partitions of a topic."""
    batches = [memoryview(workload.batch(seed)) for seed in range(workload.variants)]
    parts = [forward_batch(read_header(b), b, BatchProducer(), NO_SEQUENCE) for b in batches]
    connection = router.connection_to(LeaderOf(TopicPartition(topic, 0)), timeout_s=_WRITE_S)
    version = produce_version(connection.api_versions, by_id=False)
    for number in range(workload.batches_per_partition(partitions)):
        outgoing = [
            OutgoingBatch(topic, index, parts[number % len(parts)]) for index in range(partitions)
        ]
        answer = connection.send_and_wait(
            produce_request(version, outgoing, timeout_ms=int(_WRITE_S * 1000)), _WRITE_S
        )
        errors = {response.error_code for response in answer.partition_responses.values()} - {0}
        if errors:
            raise LabError(f"the source refuses batches of {topic}: errors {errors}")
