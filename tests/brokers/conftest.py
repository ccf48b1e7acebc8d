"""Fixtures with real clusters.

`primary` and `backup` are two one-broker clusters that all tests share. The first test that needs
one starts both. SOURCE_BOOTSTRAP and TARGET_BOOTSTRAP name other clusters to use instead.
`three_broker_cluster` and `cluster_with_authorizer` are shared, too (`tests.file_order` names the
files). `start_cluster` and `start_module_cluster` start clusters that end with the test or the
module. The reaper of `tests.lab_plugin` ends all processes, even if the test run is killed.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.kafka.clusters import SharedCluster, StartCluster, UniqueName

log = logging.getLogger(__name__)

HERE = Path(__file__).parent
TIMEOUT_S = 400  # of both tries together
# Tests do not stop shared brokers. A broker that pauses for a while must keep its partitions.
SHARED_PROPERTIES = {"auto.create.topics.enable": "false", "broker.session.timeout.ms": "60000"}
COPY_PROPERTIES = {
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": "500",
    "log.retention.ms": "-1",
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "socket.request.max.bytes": "209715200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}
"""Clusters on which copies run. They compact logs at once and notice dead brokers soon."""
RACKS = ("north", "south", "west")
"""The racks of brokers 1, 2 and 3 of the three-broker cluster."""
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
BOOTSTRAP_VARIABLES = {"primary": "SOURCE_BOOTSTRAP", "backup": "TARGET_BOOTSTRAP"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set the time limit: tests wait for brokers."""
    for item in items:
        if item.path.is_relative_to(HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def shared_clusters(
    reaper: ProcessReaper, lab_directory: Path
) -> Iterator[dict[str, SharedCluster]]:
    """`primary` and `backup`: those that the environment names, otherwise new ones."""
    outside = {
        name: os.environ[key] for name, key in BOOTSTRAP_VARIABLES.items() if key in os.environ
    }
    specs = [
        ClusterSpec(name=name, fast_start=True, properties=SHARED_PROPERTIES)
        for name in BOOTSTRAP_VARIABLES
        if name not in outside
    ]
    started = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield {
        **{
            name: SharedCluster(name=name, properties={"bootstrap.servers": servers})
            for name, servers in outside.items()
        },
        **{
            cluster.name: SharedCluster(name=cluster.name, properties=cluster.client_properties())
            for cluster in started
        },
    }
    for cluster in started:
        cluster.remove()


@pytest.fixture
def primary(shared_clusters: dict[str, SharedCluster]) -> SharedCluster:
    """The source cluster."""
    return shared_clusters["primary"]


@pytest.fixture
def backup(shared_clusters: dict[str, SharedCluster]) -> SharedCluster:
    """The target cluster."""
    return shared_clusters["backup"]


@pytest.fixture
def unique_name(request: pytest.FixtureRequest) -> UniqueName:
    """Return a function that makes names with the name of the test."""
    test = re.sub(r"[^A-Za-z0-9._-]+", "-", request.node.name)[:80]

    def name(what: str) -> str:
        return f"{what}.{test}.{secrets.token_hex(3)}"

    return name


@pytest.fixture
def topic(unique_name: UniqueName) -> str:
    """A name for a topic that no other test uses. The fixture does not create the topic."""
    return unique_name("topic")


@pytest.fixture
def start_cluster(reaper: ProcessReaper, lab_directory: Path) -> Iterator[StartCluster]:
    """Start clusters that end with the test."""
    with _clusters_removed_after(reaper, lab_directory) as start:
        yield start


@pytest.fixture(scope="module")
def start_module_cluster(reaper: ProcessReaper, lab_directory: Path) -> Iterator[StartCluster]:
    """Start clusters that end with the module."""
    with _clusters_removed_after(reaper, lab_directory) as start:
        yield start


@pytest.fixture(scope="session")
def started_three_broker_cluster(reaper: ProcessReaper, lab_directory: Path) -> Iterator[Cluster]:
    """Use `three_broker_cluster` instead."""
    spec = ClusterSpec(
        name="three",
        brokers=3,
        fast_start=True,
        racks=RACKS,
        properties={**COPY_PROPERTIES, "replica.selector.class": RACK_AWARE_SELECTOR},
    )
    (cluster,) = Cluster.start_all([spec], lab_directory, reaper, log.info)
    yield cluster
    cluster.remove()


@pytest.fixture
def three_broker_cluster(started_three_broker_cluster: Cluster) -> Cluster:
    """Three brokers, each in its own rack. All run, whatever the test before stopped."""
    started_three_broker_cluster.start_brokers()
    return started_three_broker_cluster


@pytest.fixture(scope="session")
def cluster_with_authorizer(reaper: ProcessReaper, lab_directory: Path) -> Iterator[Cluster]:
    """A cluster with an authorizer. It creates topics on demand.

    Only alice has rights, and bob those that a test grants. `test_check_command` has judy.
    """
    spec = ClusterSpec(
        name="authorizer",
        listeners=(ListenerProtocol.SASL_PLAINTEXT, ListenerProtocol.SASL_SSL),
        authorizer=True,
        users={"alice": "secret-a", "bob": "secret-b", "judy": "secret-j"},
        super_users=("alice",),
        fast_start=True,
        properties={"auto.create.topics.enable": "true", "num.partitions": "1"},
    )
    with _clusters_removed_after(reaper, lab_directory) as start:
        yield start(spec)


@contextmanager
def _clusters_removed_after(reaper: ProcessReaper, lab_directory: Path) -> Iterator[StartCluster]:
    started: list[Cluster] = []

    def start(spec: ClusterSpec) -> Cluster:
        directory = lab_directory / f"{spec.name}-{secrets.token_hex(3)}"
        started.append(Cluster.start(spec, directory, reaper, log.info))
        return started[-1]

    try:
        yield start
    finally:
        for cluster in started:
            cluster.remove()
