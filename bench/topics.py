"""Topics made to order: so many partitions, filled with batches of exactly one size."""

from __future__ import annotations

from bench.workloads import Workload
from sparkmirror.cluster.access import Access
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.errors import LabError
from sparkmirror.model import TopicPartition
from sparkmirror.wire.connection import Client
from sparkmirror.wire.forward import Producer, forward
from sparkmirror.wire.header import NO_SEQUENCE, read_header
from sparkmirror.wire.offsets import LATEST, list_offsets
from sparkmirror.wire.place import Address
from sparkmirror.wire.produce import OutgoingBatch, produce_request, produce_version
from sparkmirror.wire.routing import LeaderOf, Router

_VARIANTS = 4
"""Different batches, in turn."""
_WRITE_S = 60.0


def make_topic(access: Access, name: str, partitions: int) -> None:
    """Create a topic, and wait until its leaders serve."""
    with Admin(access) as admin:
        admin.create_topic(NewTopic(name=name, partitions=partitions))
    router = router_of(access)
    try:
        list_offsets(router, {TopicPartition(name, index): LATEST for index in range(partitions)})
    finally:
        router.close()


def fill_topic(access: Access, topic: str, workload: Workload, partitions: int) -> int:
    """Make a topic of one broker's with whole batches of a workload; return its records."""
    make_topic(access, topic, partitions)
    router = router_of(access)
    try:
        _write(router, topic, workload, partitions)
    finally:
        router.close()
    return workload.total(partitions)


def router_of(access: Access) -> Router:
    """Make a router that belongs to this thread."""
    client = Client(cluster=access.cluster, security=access.security.keywords())
    return Router(client, [Address(*address) for address in access.bootstrap])


def _write(router: Router, topic: str, workload: Workload, partitions: int) -> None:
    batches = [memoryview(workload.batch(seed)) for seed in range(_VARIANTS)]
    parts = [forward(read_header(b), b, Producer(), NO_SEQUENCE) for b in batches]
    link = router.connection_to(LeaderOf(TopicPartition(topic, 0)), timeout_s=_WRITE_S)
    version = produce_version(link.versions, by_id=False)
    for number in range(workload.batches_per_partition(partitions)):
        outgoing = [
            OutgoingBatch(topic, index, parts[number % _VARIANTS]) for index in range(partitions)
        ]
        answer = link.wait_for(
            produce_request(version, outgoing, timeout_ms=int(_WRITE_S * 1000)), _WRITE_S
        )
        errors = {said.error for said in answer.acknowledgements.values()} - {0}
        if errors:
            raise LabError(f"the source refuses batches of {topic}: errors {errors}")
