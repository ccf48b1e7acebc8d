"""Clusters for all tests of copying, two of one broker. A test may stop brokers.

The brokers compact logs at once and notice dead brokers soon, so that no test waits for that. They
keep records of any age. A test that stops a broker starts it again before it ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.brokers.conftest import COPY_PROPERTIES
from tests.support.copy.copy_flow import CopyFlow
from tests.support.copy.transform_chains import DROP_AND_MASK, DROP_MARKED
from tests.support.kafka.batch_writer import BatchWriter
from tests.support.kafka.clusters import UniqueName

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
NO_TRANSFORMS: Mapping[str, str] = {}
TIMEOUT_S = 900
"""For a test and its rerun together. Exceeding it ends the whole run, so only a test that hangs may
exceed it: on a busy machine three brokers that restart in turn take many minutes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests that stop brokers more time than other tests of their tier."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S), append=False)


@pytest.fixture(scope="session")
def one_broker_clusters(
    reaper: ProcessReaper, lab_directory: Path
) -> Iterator[tuple[Cluster, Cluster]]:
    """The source and the target cluster."""
    specs = [
        ClusterSpec(name=name, fast_start=True, properties=COPY_PROPERTIES)
        for name in ("copy-source", "copy-target")
    ]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture
def source(one_broker_clusters: tuple[Cluster, Cluster]) -> Cluster:
    """The source cluster."""
    return one_broker_clusters[0]


@pytest.fixture
def target(one_broker_clusters: tuple[Cluster, Cluster]) -> Cluster:
    """The target cluster."""
    return one_broker_clusters[1]


def flow_between(
    name: str,
    source: Cluster,
    target: Cluster,
    replicas: int = 1,
    transforms: Mapping[str, str] = NO_TRANSFORMS,
) -> CopyFlow:
    """A flow from one cluster to another."""
    return CopyFlow(
        name=name,
        source=source.access(),
        target=target.access(),
        source_properties=source.client_properties(),
        target_properties=target.client_properties(),
        replication_factor=replicas,
        transforms=transforms,
    )


@pytest.fixture
def transforms() -> Mapping[str, str]:
    """The transformations of `flow`; `lanes` gives a test others."""
    return NO_TRANSFORMS


_LANES = [
    pytest.param(NO_TRANSFORMS, id="plain"),
    pytest.param(DROP_AND_MASK, id="records"),
    pytest.param(DROP_MARKED, id="headers"),
]
lanes = pytest.mark.parametrize("transforms", _LANES[:2])
"""Runs a test with batches as they are, and with transformations of their records."""
all_lanes = pytest.mark.parametrize("transforms", _LANES)
"""The same, and with transformations that leave keys and values closed."""


@pytest.fixture
def flow(
    source: Cluster, target: Cluster, unique_name: UniqueName, transforms: Mapping[str, str]
) -> CopyFlow:
    """A flow that no other test uses."""
    return flow_between(unique_name("flow"), source, target, transforms=transforms)


@pytest.fixture
def writer(source: Cluster) -> Iterator[BatchWriter]:
    """Writes to the source cluster."""
    made = BatchWriter(source.access())
    yield made
    made.close()
