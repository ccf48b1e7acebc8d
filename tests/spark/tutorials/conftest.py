"""The clusters of the tutorials: pairs with one and two brokers, and clusters with logins.

`tests.file_order` names the tutorials that share the pair with one broker, or the secured source.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from sparkmirror.cluster.admin import Admin
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from sparkmirror.wire.net.address import Address
from tests.support.kafka.clusters import SharedCluster
from tests.support.security.msk_iam_listener import MskIamListener
from tests.support.spark.mirrored_clusters import MirroredClusters
from tests.support.tutorials.tutorial import write_kafka_tools

log = logging.getLogger(__name__)

IAM_LISTENER = "IAM"
AWS_REGION = "us-east-2"
AWS_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
}
EVENT_STREAMS_SOURCE_KEY, EVENT_STREAMS_TARGET_KEY = "985...", "am_..."
"""The API keys that tutorial 003 prints."""
LONG_WAITS = {"replica.fetch.wait.max.ms": "5000"}
"""Followers ask leaders less often for records that do not come: idle brokers cost a third less."""
EVENT_HUBS_CONNECTION_STRING = (
    "Endpoint=sb://namespace.servicebus.windows.net/;SharedAccessKeyName=mm2;SharedAccessKey=a+b/c="
)


@pytest.fixture(scope="session")
def kafka_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with Kafka's own tools."""
    directory = tmp_path_factory.mktemp("kafka") / "bin"
    write_kafka_tools(directory)
    return directory


@pytest.fixture(scope="session")
def iam_authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """Issues the certificates of the IAM listeners."""
    return CertificateAuthority.create(tmp_path_factory.mktemp("iam") / "tls")


@pytest.fixture(scope="session")
def iam_listeners(
    iam_authority: CertificateAuthority,
) -> Iterator[tuple[MskIamListener, MskIamListener]]:
    """The IAM listeners of the clusters with one broker."""
    keys = {AWS_CREDENTIALS["AWS_ACCESS_KEY_ID"]: AWS_CREDENTIALS["AWS_SECRET_ACCESS_KEY"]}
    with (
        MskIamListener(iam_authority, AWS_REGION, keys) as source,
        MskIamListener(iam_authority, AWS_REGION, keys) as target,
    ):
        yield source, target


@pytest.fixture(scope="session")
def single_broker_clusters(
    reaper: ProcessReaper,
    lab_directory: Path,
    iam_listeners: tuple[MskIamListener, MskIamListener],
) -> Iterator[MirroredClusters]:
    """Source and target with one broker each, an authorizer that allows everything, and IAM."""
    specs = [
        ClusterSpec(
            name=name,
            fast_start=True,
            authorizer=True,
            properties={"allow.everyone.if.no.acl.found": "true"},
            proxied_listeners={IAM_LISTENER: listener.address},
        )
        for name, listener in zip(
            ("tutorial-source", "tutorial-target"), iam_listeners, strict=True
        )
    ]
    clusters = Cluster.start_all(specs, lab_directory, reaper, log.info)
    for cluster, listener in zip(clusters, iam_listeners, strict=True):
        listener.forward_to(Address.parse(cluster.client_settings.bootstrap_servers(IAM_LISTENER)))
    yield mirrored_without_logins(*clusters)
    for cluster in clusters:
        cluster.remove()


@pytest.fixture
def two_broker_clusters(reaper: ProcessReaper, lab_directory: Path) -> Iterator[MirroredClusters]:
    """Source and target with two brokers each."""
    specs = [
        ClusterSpec(name=f"tutorial-two-{name}", brokers=2, fast_start=True, properties=LONG_WAITS)
        for name in ("source", "target")
    ]
    clusters = Cluster.start_all(specs, lab_directory, reaper, log.info)
    yield mirrored_without_logins(*clusters)
    for cluster in clusters:
        cluster.remove()


@pytest.fixture(scope="session")
def started_secured_source(reaper: ProcessReaper, lab_directory: Path) -> Iterator[Cluster]:
    """Use `secured_source` instead."""
    spec = ClusterSpec(
        name="tutorial-secured-source",
        fast_start=True,
        listeners=(ListenerProtocol.SASL_SSL, ListenerProtocol.SSL, ListenerProtocol.PLAINTEXT),
        users={"token": EVENT_STREAMS_SOURCE_KEY},
    )
    [source] = Cluster.start_all([spec], lab_directory, reaper, log.info)
    yield source
    source.remove()


@pytest.fixture
def secured_source(started_secured_source: Cluster) -> Cluster:
    """A source with one broker, TLS and a login. It has no topics of the tutorial before."""
    with Admin(started_secured_source.access(ListenerProtocol.PLAINTEXT)) as admin:
        found = [name for name in admin.describe_topics() if not name.startswith("__")]
        assert admin.delete_topics(found) == {}
    return started_secured_source


@pytest.fixture
def secured_target(reaper: ProcessReaper, lab_directory: Path) -> Iterator[Cluster]:
    """A target with TLS and logins, and without both.

    It has three brokers: Connect's topics have factor 3 where a file does not say more.
    """
    spec = ClusterSpec(
        name="tutorial-secured-target",
        brokers=3,
        fast_start=True,
        properties=LONG_WAITS,
        listeners=(ListenerProtocol.SASL_SSL, ListenerProtocol.PLAINTEXT),
        users={"token": EVENT_STREAMS_TARGET_KEY},
    )
    [target] = Cluster.start_all([spec], lab_directory, reaper, log.info)
    yield target
    target.remove()


def authority_of(cluster: Cluster) -> CertificateAuthority:
    """Return the authority that issued the certificates of a cluster."""
    return CertificateAuthority(cluster.directory / "tls")


def write_system_authorities(file: Path, authorities: Iterable[CertificateAuthority]) -> None:
    """Write the authorities that this computer trusts: those of public clouds in a tutorial."""
    texts = [authority.ca_certificate.read_text("ascii") for authority in authorities]
    file.write_text("".join(texts), "ascii")


def mirrored_without_logins(source: Cluster, target: Cluster) -> MirroredClusters:
    """Return methods to write and compare records, through listeners without a login."""
    shared = [
        SharedCluster(
            name=cluster.name, properties=cluster.client_properties(ListenerProtocol.PLAINTEXT)
        )
        for cluster in (source, target)
    ]
    return MirroredClusters(source=shared[0], target=shared[1])
