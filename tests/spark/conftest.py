"""What tests on Spark share: a class archive, brokers, and a guard that clears up.

The archive is kept in the user's cache: the first run builds it, as an installation does.
"""

from __future__ import annotations

import logging
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.engine.driver import cds_archive
from sparkmirror.engine.driver.spark_home import linked_spark_home
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
"""Who may log in to the second town, with which password."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark takes its time, more so on a busy machine."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session", autouse=True)
def quick_spark() -> None:
    """Let Spark start quickly in all tests."""
    home = linked_spark_home(os.environ)
    if home and not home.cds_archive.is_file():
        cds_archive.build_archive()


@pytest.fixture(scope="session")
def importable() -> Iterator[None]:
    """Let driver processes import what tests support them with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(scope="session")
def guard() -> Iterator[ProcessReaper]:
    """Clears up after this test run, however it ends."""
    with ProcessReaper.start() as on_duty:
        yield on_duty


@pytest.fixture(scope="session")
def lab_directory(guard: ProcessReaper) -> Path:
    """A directory that is gone after this test run."""
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-tests-"))
    guard.remove_on_exit(directory)
    return directory


@pytest.fixture(scope="session")
def pair(guard: ProcessReaper, lab_directory: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """Source and target."""
    properties = {"auto.create.topics.enable": "false"}
    specs = [
        ClusterSpec(name=name, fast_start=True, properties=properties)
        for name in ("spark-source", "spark-target")
    ]
    source, target = Cluster.start_all(specs, lab_directory, guard, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture(scope="session")
def towns(guard: ProcessReaper, lab_directory: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters of one broker each that create topics when asked, for whole programs.

    The second one also lets in MIRROR_USER with a password.
    """
    specs = [
        ClusterSpec(name="town-source", fast_start=True),
        ClusterSpec(
            name="town-target",
            fast_start=True,
            listeners=(ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT),
            users=MIRROR_USER,
        ),
    ]
    source, target = Cluster.start_all(specs, lab_directory, guard, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture(scope="session")
def sides(towns: tuple[Cluster, Cluster]) -> MirroredClusters:
    """The same two as tests see them."""
    source, target = (
        SharedCluster(name=town.name, properties=town.client_properties(ListenerProtocol.PLAINTEXT))
        for town in towns
    )
    return MirroredClusters(source=source, target=target)


@pytest.fixture(scope="module")
def flow(request: pytest.FixtureRequest, pair: tuple[Cluster, Cluster]) -> CopyFlow:
    """A flow of this module alone."""
    source, target = pair
    return CopyFlow(
        name=f"flow-{request.module.__name__.rpartition('.')[2]}",
        source=source.access(),
        target=target.access(),
        source_properties=source.client_properties(),
        target_properties=target.client_properties(),
    )


@pytest.fixture(scope="module")
def writer(pair: tuple[Cluster, Cluster]) -> Iterator[BatchWriter]:
    """Writes to the source."""
    made = BatchWriter(pair[0].access())
    yield made
    made.close()
