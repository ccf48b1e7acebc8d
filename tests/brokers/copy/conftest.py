"""Two one-broker clusters of our own for everything about copying: tests may stop them.

They compact and delete at once, forget old producers at once and notice dead brokers soon, so that
no test waits for any of that, and keep records of any age unless a test says otherwise. A test that
stops a broker starts it again before it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter
from tests.support.kafka.clusters import UniqueName

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
TIMEOUT_S = 900
"""Of both tries together. A limit that is passed ends the whole run, so only what hangs may pass
it: on a busy computer six brokers that restart one after the other take many minutes."""

PROPERTIES = {
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "100",
    "producer.id.expiration.check.interval.ms": "1000",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "socket.request.max.bytes": "209715200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that stop brokers more time than the others of their tier."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S), append=False)


@pytest.fixture(scope="session")
def pair(guard: ProcessReaper, lab_directory: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """Source and target."""
    specs = [
        ClusterSpec(name=name, fast_start=True, properties=PROPERTIES)
        for name in ("copy-source", "copy-target")
    ]
    source, target = Cluster.start_all(specs, lab_directory, guard, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture
def source(pair: tuple[Cluster, Cluster]) -> Cluster:
    """The cluster that is read."""
    return pair[0]


@pytest.fixture
def target(pair: tuple[Cluster, Cluster]) -> Cluster:
    """The cluster that is written to."""
    return pair[1]


def flow_between(name: str, source: Cluster, target: Cluster, replicas: int = 1) -> CopyFlow:
    """A flow from one cluster to another."""
    return CopyFlow(
        name=name,
        source=source.access(),
        target=target.access(),
        source_properties=source.client_properties(),
        target_properties=target.client_properties(),
        replication_factor=replicas,
    )


@pytest.fixture
def flow(source: Cluster, target: Cluster, unique_name: UniqueName) -> CopyFlow:
    """A flow of this test alone."""
    return flow_between(unique_name("flow"), source, target)


@pytest.fixture
def writer(source: Cluster) -> Iterator[BatchWriter]:
    """Writes to the source."""
    made = BatchWriter(source.access())
    yield made
    made.close()
