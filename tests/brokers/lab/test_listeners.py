"""Listeners of the lab: who gets in where, who does not, and who may do what."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.probe import probe
from sparkmirror.cluster.topics import NewTopic
from sparkmirror.errors import ClusterUnavailable, NotAuthorized, NotFound
from sparkmirror.lab.cluster.certificates import STORE_PASSWORD, CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.properties_file import write_properties
from sparkmirror.lab.cluster.sasl_config import MECHANISMS
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from tests.support.kafka.clusters import StartCluster, create_topic, read_values, write_values

USERS = {"alice": 'a "quoted" \\ secret, ä', "bob": "bobs-secret"}
LOGINS = [
    (listener, mechanism)
    for listener in (ListenerProtocol.SASL_PLAINTEXT, ListenerProtocol.SASL_SSL)
    for mechanism in MECHANISMS
]


@pytest.fixture(scope="module")
def fortress(start_module_cluster: StartCluster) -> Cluster:
    """All four listeners, certificates asked for on SSL, and only alice may do things."""
    return start_module_cluster(
        ClusterSpec(
            name="fortress",
            fast_start=True,
            listeners=tuple(ListenerProtocol),
            mutual_tls=True,
            authorizer=True,
            users=USERS,
            super_users=("alice",),
        )
    )


def refusal_message(access: ClusterAccess) -> str:
    """Return what a broker says when it does not let us in."""
    with pytest.raises(NotAuthorized) as refusal:
        probe(access, access.bootstrap_servers[0], timeout_s=60)
    return str(refusal.value)


def access_with(properties: dict[str, str], **changes: str) -> ClusterAccess:
    """Build a way in that differs in some settings, named with underscores for dots."""
    named = {key.replace("_", "."): value for key, value in changes.items()}
    return ClusterAccess.from_properties("fortress", {**properties, **named})


@pytest.mark.parametrize(("listener", "mechanism"), LOGINS, ids=lambda part: str(part))
def test_a_user_logs_in(
    fortress: Cluster, topic: str, listener: ListenerProtocol, mechanism: str
) -> None:
    access = fortress.access(listener, "alice", mechanism)
    create_topic(access, topic)
    write_values(access, topic, b"by alice")
    assert read_values(access, topic) == [b"by alice"]


@pytest.mark.parametrize(("listener", "mechanism"), LOGINS, ids=lambda part: str(part))
def test_a_wrong_password_is_refused_at_once(
    fortress: Cluster, listener: ListenerProtocol, mechanism: str
) -> None:
    properties = fortress.client_properties(listener, "bob", mechanism)
    wrong = properties["sasl.jaas.config"].replace("bobs-secret", "guessed")
    said = refusal_message(access_with(properties, sasl_jaas_config=wrong))
    assert f"{mechanism} login failed" in said
    assert "guessed" not in said


def test_a_certificate_says_who_one_is(fortress: Cluster, topic: str) -> None:
    access = fortress.access(ListenerProtocol.SSL, "alice")
    create_topic(access, topic)
    write_values(access, topic, b"by certificate")
    assert read_values(access, topic) == [b"by certificate"]


def test_nobody_gets_in_on_mutual_tls_without_a_certificate(fortress: Cluster) -> None:
    properties = fortress.client_properties(ListenerProtocol.SSL)
    del properties["ssl.keystore.location"]
    access = ClusterAccess.from_properties("fortress", properties)
    # With TLS 1.3 a client learns of the refusal after its own handshake has ended.
    with pytest.raises((NotAuthorized, ClusterUnavailable)):
        probe(access, access.bootstrap_servers[0], timeout_s=60)


def test_a_broker_signed_by_a_stranger_is_not_trusted(fortress: Cluster, tmp_path: Path) -> None:
    stranger = CertificateAuthority.create(tmp_path / "tls")
    properties = fortress.client_properties(ListenerProtocol.SASL_SSL)
    said = refusal_message(
        access_with(properties, ssl_truststore_location=str(stranger.ca_certificate))
    )
    assert "its certificate is not accepted" in said


def test_the_broker_names_the_mechanisms_it_offers(fortress: Cluster) -> None:
    control = fortress.client_settings.admin_access()
    scram = fortress.access(ListenerProtocol.SASL_PLAINTEXT, "alice")
    access = ClusterAccess(
        cluster="fortress", bootstrap_servers=control.bootstrap_servers, security=scram.security
    )
    assert "does not take SCRAM-SHA-512, it offers PLAIN" in refusal_message(access)


def test_the_wrong_protocol_for_a_port_is_told_from_a_wrong_password(fortress: Cluster) -> None:
    plain = ClusterAccess.from_properties(
        "fortress", {"bootstrap.servers": fortress.bootstrap_servers(ListenerProtocol.SASL_SSL)}
    )
    with pytest.raises(ClusterUnavailable, match="right port for that security protocol"):
        probe(plain, plain.bootstrap_servers[0], timeout_s=60)


@pytest.mark.parametrize(
    ("listener", "user"),
    [
        (ListenerProtocol.PLAINTEXT, None),
        (ListenerProtocol.SSL, "bob"),
        (ListenerProtocol.SASL_PLAINTEXT, "bob"),
        (ListenerProtocol.SASL_SSL, "bob"),
    ],
    ids=["anonymous", "certificate", "sasl", "sasl-ssl"],
)
def test_the_authorizer_denies_who_has_no_right(
    fortress: Cluster, topic: str, listener: ListenerProtocol, user: str | None
) -> None:
    with Admin(fortress.access(listener, user)) as admin:
        assert admin.describe_topics() == {}
        with pytest.raises(NotAuthorized, match="TOPIC_AUTHORIZATION_FAILED"):
            admin.create_topic(NewTopic(name=topic))


def test_the_authorizer_allows_the_super_user(fortress: Cluster, topic: str) -> None:
    with Admin(fortress.access(ListenerProtocol.SASL_SSL, "alice")) as admin:
        admin.create_topic(NewTopic(name=topic, partitions=2))
        assert len(admin.describe_topics([topic])[topic].partitions) == 2


def test_writing_without_a_right_is_refused(fortress: Cluster, topic: str) -> None:
    create_topic(fortress.access(ListenerProtocol.SASL_SSL, "alice"), topic)
    with pytest.raises(NotAuthorized):
        write_values(fortress.access(ListenerProtocol.SASL_SSL, "bob"), topic, b"smuggled")
    assert read_values(fortress.access(ListenerProtocol.SASL_SSL, "alice"), topic) == []


def test_kafkas_own_tools_understand_the_client_properties(
    fortress: Cluster, topic: str, tmp_path: Path
) -> None:
    create_topic(fortress.access(ListenerProtocol.SASL_SSL, "alice"), topic)
    trust = CertificateAuthority(fortress.directory / "tls").trust_store
    properties = fortress.client_properties(ListenerProtocol.SASL_SSL, "alice") | {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": STORE_PASSWORD,
    }
    config = write_properties(tmp_path / "client.properties", properties)
    bootstrap = ["--bootstrap-server", fortress.bootstrap_servers(ListenerProtocol.SASL_SSL)]
    ask = [*bootstrap, "--command-config", str(config), "--list"]
    listed = KafkaToolRunner().run("kafka-topics", ask, timeout_s=180)
    assert topic in listed.split()


def test_an_unknown_user_is_named(fortress: Cluster) -> None:
    with pytest.raises(NotFound, match="no user 'carol': its users are alice, bob"):
        fortress.client_properties(ListenerProtocol.SASL_SSL, "carol")
