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

from sparkmirror.engine import archive
from sparkmirror.engine.home import quick_home
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.guard import Guard
from sparkmirror.lab.spec import ClusterSpec, Listener
from tests.support.clusters import Reachable
from tests.support.flows import Flow
from tests.support.sides import Sides
from tests.support.writing import Writer

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
    home = quick_home(os.environ)
    if home and not home.archive.is_file():
        archive.build()


@pytest.fixture(scope="session")
def importable() -> Iterator[None]:
    """Let driver processes import what tests support them with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        yield


@pytest.fixture(scope="session")
def guard() -> Iterator[Guard]:
    """Clears up after this test run, however it ends."""
    with Guard.watch() as on_duty:
        yield on_duty


@pytest.fixture(scope="session")
def lab_directory(guard: Guard) -> Path:
    """A directory that is gone after this test run."""
    directory = Path(tempfile.mkdtemp(prefix="sparkmirror-tests-"))
    guard.remove_at_end(directory)
    return directory


@pytest.fixture(scope="session")
def pair(guard: Guard, lab_directory: Path) -> Iterator[tuple[Cluster, Cluster]]:
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
def towns(guard: Guard, lab_directory: Path) -> Iterator[tuple[Cluster, Cluster]]:
    """Two clusters of one broker each that create topics when asked, for whole programs.

    The second one also lets in MIRROR_USER with a password.
    """
    specs = [
        ClusterSpec(name="town-source", fast_start=True),
        ClusterSpec(
            name="town-target",
            fast_start=True,
            listeners=(Listener.PLAINTEXT, Listener.SASL_PLAINTEXT),
            users=MIRROR_USER,
        ),
    ]
    source, target = Cluster.start_all(specs, lab_directory, guard, log.info)
    yield source, target
    for cluster in (source, target):
        cluster.remove()


@pytest.fixture(scope="session")
def sides(towns: tuple[Cluster, Cluster]) -> Sides:
    """The same two as tests see them."""
    source, target = (
        Reachable(name=town.name, properties=town.client_properties(Listener.PLAINTEXT))
        for town in towns
    )
    return Sides(source=source, target=target)


@pytest.fixture(scope="module")
def flow(request: pytest.FixtureRequest, pair: tuple[Cluster, Cluster]) -> Flow:
    """A flow of this module alone."""
    source, target = pair
    return Flow(
        name=f"flow-{request.module.__name__.rpartition('.')[2]}",
        source=source.access(),
        target=target.access(),
        source_properties=source.client_properties(),
        target_properties=target.client_properties(),
    )


@pytest.fixture(scope="module")
def writer(pair: tuple[Cluster, Cluster]) -> Iterator[Writer]:
    """Writes to the source."""
    made = Writer(pair[0].access())
    yield made
    made.close()
