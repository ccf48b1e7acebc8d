"""Fixtures of tests on Spark: the class archive, and two pairs of clusters.

The class archive is in the user's cache; the first run builds it.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.engine.driver import cds_archive
from sparkmirror.engine.driver.fast_start_spark_home import linked_spark_home
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.copy.copy_flow import CopyFlow
from tests.support.kafka.batch_writer import BatchWriter
from tests.support.kafka.clusters import SharedCluster
from tests.support.spark.mirrored_clusters import MirroredClusters

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TIMEOUT_S = 2400  # of both tries together
MIRROR_USER = {"mirror": f"sesame-{secrets.token_hex(8)}"}
"""User and password of the second program cluster."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give tests on Spark a long timeout: Spark is slow on a busy machine."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session", autouse=True)
def spark_archive() -> None:
    """Build the class archive if there is none, so that Spark starts quickly."""
    home = linked_spark_home(os.environ)
    if home and not home.cds_archive.is_file():
        cds_archive.build_archive()


@pytest.fixture(scope="session")
def tests_on_pythonpath() -> Iterator[None]:
    """Let driver processes import `tests.support`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(scope="session")
def copy_clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """Source and target, for tests of one driver."""
    properties = {"auto.create.topics.enable": "false"}
    specs = [
        ClusterSpec(name=name, fast_start=True, properties=properties)
        for name in ("spark-source", "spark-target")
    ]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture(scope="session")
def program_clusters(
    reaper: ProcessReaper, lab_directory: Path
) -> Iterator[tuple[Cluster, Cluster]]:
    """Two one-broker clusters with automatic topic creation, for whole programs.

    The second one also has a listener with a login for MIRROR_USER.
    """
    specs = [
        ClusterSpec(name="program-source", fast_start=True),
        ClusterSpec(
            name="program-target",
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT),
            users=MIRROR_USER,
        ),
    ]
    source, target = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture(scope="session")
def mirrored_clusters(program_clusters: tuple[Cluster, Cluster]) -> MirroredClusters:
    """The program clusters, with methods to write and compare records."""
    source, target = (
        SharedCluster(
            name=cluster.name, properties=cluster.client_properties(ListenerProtocol.PLAINTEXT)
        )
        for cluster in program_clusters
    )
    return MirroredClusters(source=source, target=target)


@pytest.fixture(scope="module")
def flow(request: pytest.FixtureRequest, copy_clusters: tuple[Cluster, Cluster]) -> CopyFlow:
    """A flow whose names contain the module's."""
    source, target = copy_clusters
    return CopyFlow(
        name=f"flow-{request.module.__name__.rpartition('.')[2]}",
        source=source.access(),
        target=target.access(),
        source_properties=source.client_properties(),
        target_properties=target.client_properties(),
    )


@pytest.fixture(scope="module")
def writer(copy_clusters: tuple[Cluster, Cluster]) -> Iterator[BatchWriter]:
    """Writes to the source."""
    made = BatchWriter(copy_clusters[0].access())
    yield made
    made.close()
