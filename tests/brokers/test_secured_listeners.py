"""Listeners of every security protocol: logins, errors with their reason, and ACLs."""

from __future__ import annotations

import random
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.acls import describe_topic_acls
from sparkmirror.cluster.admin import Admin
from sparkmirror.cluster.describe_topics import NewTopic
from sparkmirror.cluster.groups import list_consumer_group_offsets
from sparkmirror.cluster.produce_and_consume import ProducerRecord, produce_records
from sparkmirror.cluster.topic_changes import create_topics
from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized, NotFound
from sparkmirror.lab.cluster.certificates import STORE_PASSWORD, CertificateAuthority
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.lab.cluster.sasl_config import MECHANISMS
from sparkmirror.lab.kafka.tool_runner import KafkaToolRunner
from sparkmirror.lab.properties_file import write_properties
from sparkmirror.model import TopicPartition
from sparkmirror.security.sasl_credentials import PasswordLogin, TokenLogin
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.net.routing import Router
from sparkmirror.wire.protocol.apis import METADATA
from sparkmirror.wire.protocol.producer_ids import init_producer_id
from tests.support.kafka.clusters import StartCluster, create_topic, read_values, write_values
from tests.support.kafka.wire_copier import (
    WireCopier,
    connect_first_broker,
    make_router,
    read_stored_batches,
    wire_client,
)
from tests.support.security.fixed_token import FixedToken
from tests.support.security.oauth_server import OAuthServer, running_oauth_server
from tests.support.timing import fastest_run_s
from tests.support.waiting import wait_until

USERS = {"alice": 'a "quoted" \\ secret, ä', "bob": "bobs-secret"}
OAUTH_CLIENTS = {"alice": "alices-client-secret"}
LOGINS = [
    (listener, mechanism)
    for listener in (ListenerProtocol.SASL_PLAINTEXT, ListenerProtocol.SASL_SSL)
    for mechanism in MECHANISMS
]
SESSION_MS = 5000
"""Brokers refuse to renew a session within its first second."""
RENEWAL_MARGIN_S = 0.4
"""A session is renewed at least this long before its end: almost a tenth of it."""
TRIES = 5


@pytest.fixture(scope="module")
def oauth_server() -> Iterator[OAuthServer]:
    """Issues the tokens that the cluster accepts."""
    with running_oauth_server(OAUTH_CLIENTS) as server:
        yield server


@pytest.fixture(scope="module")
def secured_cluster(start_module_cluster: StartCluster, oauth_server: OAuthServer) -> Cluster:
    """One broker with all listeners and certificates of clients. Only alice has rights.

    Sessions of SCRAM-SHA-256 over TLS are short.
    """
    return start_module_cluster(
        ClusterSpec(
            name="secured",
            fast_start=True,
            listeners=tuple(ListenerProtocol),
            mutual_tls=True,
            authorizer=True,
            users=USERS,
            super_users=("alice",),
            oauth=oauth_server.endpoints,
            properties={
                "listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS),
                "delegation.token.secret.key": "signs the tokens of this cluster",
            },
        )
    )


def broker_count(connection: BrokerConnection) -> int:
    message = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    return len(connection.call(METADATA, message).brokers)


def open_connection(access: ClusterAccess, **changes: Any) -> BrokerConnection:
    """Connect with some security settings changed."""
    security = replace(wire_client(access).security.current(), **changes)
    client = ClientConfig(cluster=access.cluster, security=security)
    return BrokerConnection.open(client, Address(*access.bootstrap_servers[0]))


def with_token(cluster: Cluster, listener: ListenerProtocol, token: str) -> ClusterAccess:
    """Return the access to a listener with one token."""
    access = cluster.access(listener)
    login = TokenLogin(tokens=FixedToken(token))
    return replace(access, security=replace(access.security.current(), login=login))


def connection_error(access: ClusterAccess, kind: type[ClusterError], **changes: Any) -> str:
    """Fail to connect within three seconds, and return the text of the error."""
    texts: list[str] = []

    def connect() -> None:
        with pytest.raises(kind) as caught:
            open_connection(access, **changes).close()
        assert type(caught.value) is kind
        assert not any(password in str(caught.value) for password in USERS.values())
        texts.append(str(caught.value))

    assert fastest_run_s(connect) < 3
    return texts[-1]


# -- logins ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("listener", "mechanism"), LOGINS, ids=lambda part: str(part))
def test_a_user_logs_in(
    secured_cluster: Cluster, topic: str, listener: ListenerProtocol, mechanism: str
) -> None:
    access = secured_cluster.access(listener, "alice", mechanism)
    create_topic(access, topic)
    write_values(access, topic, b"by alice")
    assert read_values(access, topic) == [b"by alice"]


@pytest.mark.parametrize(("listener", "mechanism"), LOGINS, ids=lambda part: str(part))
def test_a_wrong_password_is_refused_at_once(
    secured_cluster: Cluster, listener: ListenerProtocol, mechanism: str
) -> None:
    access = secured_cluster.access(listener, "bob", mechanism)
    guess = PasswordLogin(mechanism=mechanism, username="bob", password=Password("guessed"))
    text = connection_error(access, NotAuthorized, login=guess)
    assert f"{mechanism} login failed: Authentication failed" in text
    assert "check the user name, the password or the token (sasl.jaas.config)" in text
    assert f"secured: {listener} 127.0.0.1:" in text
    assert "guessed" not in text


def test_a_certificate_identifies_a_user(secured_cluster: Cluster, topic: str) -> None:
    access = secured_cluster.access(ListenerProtocol.SSL, "alice")
    create_topic(access, topic)
    write_values(access, topic, b"by certificate")
    assert read_values(access, topic) == [b"by certificate"]


@pytest.mark.parametrize(
    "listener", [ListenerProtocol.SASL_PLAINTEXT, ListenerProtocol.SASL_SSL], ids=str
)
def test_a_token_of_the_oauth_server_identifies_a_user(
    secured_cluster: Cluster, oauth_server: OAuthServer, topic: str, listener: ListenerProtocol
) -> None:
    access = with_token(secured_cluster, listener, oauth_server.issue_token("alice"))
    create_topic(access, topic)
    write_values(access, topic, b"by token")
    assert read_values(access, topic) == [b"by token"]


def test_librdkafka_logs_in_with_a_token_that_it_fetches(
    secured_cluster: Cluster, oauth_server: OAuthServer
) -> None:
    admin: Any = AdminClient(
        {
            "bootstrap.servers": secured_cluster.bootstrap_servers(ListenerProtocol.SASL_PLAINTEXT),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": oauth_server.endpoints.token_url,
            "sasl.oauthbearer.client.id": "alice",
            "sasl.oauthbearer.client.secret": "alices-client-secret",
        }
    )
    assert admin.list_topics(timeout=60).cluster_id == secured_cluster.cluster_id


@pytest.mark.parametrize(
    "claims", [{"exp": 1}, {"aud": "another-service"}], ids=["expired", "of-another-audience"]
)
def test_a_token_that_is_not_valid_is_refused_at_once(
    secured_cluster: Cluster, oauth_server: OAuthServer, claims: dict[str, object]
) -> None:
    token = oauth_server.issue_token("alice", **claims)
    access = with_token(secured_cluster, ListenerProtocol.SASL_SSL, token)
    text = connection_error(access, NotAuthorized)
    assert "OAUTHBEARER login failed" in text
    assert token not in text


def test_an_unsupported_mechanism_is_refused_with_the_supported_ones(
    secured_cluster: Cluster,
) -> None:
    access = secured_cluster.access(ListenerProtocol.SASL_SSL, "alice")
    login = TokenLogin(tokens=FixedToken("unused"), mechanism="AWS_MSK_IAM")
    text = connection_error(access, NotAuthorized, login=login)
    assert "it does not accept AWS_MSK_IAM, it offers" in text
    assert "set sasl.mechanism" in text
    assert "SCRAM-SHA-512" in text


def test_a_listener_with_sasl_closes_a_connection_without_a_login(
    secured_cluster: Cluster,
) -> None:
    connection = open_connection(
        secured_cluster.access(ListenerProtocol.SASL_PLAINTEXT), protocol="PLAINTEXT", login=None
    )
    with pytest.raises(ClusterUnavailable, match=r"closed the connection.*security\.protocol"):
        broker_count(connection)


def test_an_unknown_user_is_named(secured_cluster: Cluster) -> None:
    with pytest.raises(NotFound, match="no user 'carol': its users are alice, bob"):
        secured_cluster.client_properties(ListenerProtocol.SASL_SSL, "carol")


# -- TLS -------------------------------------------------------------------------------------------


def test_a_broker_with_a_certificate_of_another_authority_is_not_trusted(
    secured_cluster: Cluster, tmp_path: Path
) -> None:
    other = CertificateAuthority.create(tmp_path / "tls")
    text = connection_error(
        secured_cluster.access(ListenerProtocol.SASL_SSL),
        NotAuthorized,
        ssl_context=ssl.create_default_context(cafile=str(other.ca_certificate)),
    )
    assert "its certificate is not accepted" in text
    assert "ssl.truststore.location" in text


@pytest.mark.parametrize(
    ("listener", "reason", "advice"),
    [
        (ListenerProtocol.SSL_EXPIRED, "certificate has expired", "renew the certificate"),
        (
            ListenerProtocol.SSL_OTHER_HOST,
            "IP address mismatch",
            "ssl.endpoint.identification.algorithm",
        ),
    ],
    ids=["expired", "of-another-host"],
)
def test_a_broker_with_a_faulty_certificate_is_refused_for_that_fault(
    secured_cluster: Cluster, listener: ListenerProtocol, reason: str, advice: str
) -> None:
    text = connection_error(secured_cluster.access(listener), NotAuthorized)
    assert "secured: SSL 127.0.0.1:" in text
    assert reason in text
    assert advice in text


def test_mutual_tls_refuses_a_client_without_a_certificate(secured_cluster: Cluster) -> None:
    without_key = ssl.create_default_context(
        cafile=secured_cluster.client_properties(ListenerProtocol.SSL)["ssl.truststore.location"]
    )
    text = connection_error(
        secured_cluster.access(ListenerProtocol.SSL), NotAuthorized, ssl_context=without_key
    )
    assert "TLS failed" in text
    assert "ssl.keystore.location" in text


def test_the_error_about_a_wrong_protocol_names_the_port(secured_cluster: Cluster) -> None:
    plain = {"protocol": "PLAINTEXT", "login": None, "ssl_context": None}
    for listener in (ListenerProtocol.SSL, ListenerProtocol.SASL_SSL):
        access = secured_cluster.access(listener)
        assert "right port" in connection_error(access, ClusterUnavailable, **plain)
    context = secured_cluster.access(ListenerProtocol.SSL).security.current().ssl_context
    tls = {"protocol": "SSL", "login": None, "ssl_context": context}
    for listener in (ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT):
        text = connection_error(secured_cluster.access(listener), ClusterUnavailable, **tls)
        assert "it closed the connection, before its first response" in text
        assert "bootstrap.servers, security.protocol" in text


# -- sessions and data -----------------------------------------------------------------------------


def test_a_session_that_ends_is_renewed_in_time(secured_cluster: Cluster) -> None:
    access = secured_cluster.access(ListenerProtocol.SASL_SSL, "alice", "SCRAM-SHA-256")
    assert any(works_after_its_session(access) for _ in range(TRIES))


def works_after_its_session(access: ClusterAccess) -> bool:
    """Send requests until the first session is long over.

    Returns False if this process paused for so long that there was no time to renew the session.
    """
    connection = connect_first_broker(access)
    responded_at = time.monotonic()
    until = responded_at + 1.3 * SESSION_MS / 1000
    try:
        while responded_at < until:
            assert broker_count(connection) == 1
            responded_at = time.monotonic()
            time.sleep(0.02)
    except ClusterUnavailable:
        if time.monotonic() - responded_at < RENEWAL_MARGIN_S:
            raise
        return False
    finally:
        connection.close()
    return True


@pytest.mark.parametrize("listener", [ListenerProtocol.SSL, ListenerProtocol.SASL_SSL], ids=str)
def test_batches_copied_over_tls_are_the_same(
    secured_cluster: Cluster, listener: ListenerProtocol, topic: str
) -> None:
    access = secured_cluster.access(listener, "alice", "SCRAM-SHA-512")
    topics = (f"{topic}.from", f"{topic}.to")
    for name in topics:
        create_topic(access, name, partitions=2)
    rng = random.Random(1)
    values = [rng.randbytes(rng.randrange(1, 150_000)) for _ in range(12)]
    produce_records(
        access,
        topics[0],
        [ProducerRecord(value=value, partition=n % 2) for n, value in enumerate(values)],
    )
    router = make_router(access)
    WireCopier(router, router, topics, (16, 13)).run(len(values))
    for index in range(2):
        original = read_stored_batches(router, TopicPartition(topics[0], index))
        assert sum(len(batch.body) for batch in original) > 100_000
        assert read_stored_batches(router, TopicPartition(topics[1], index)) == original
    router.close()


# -- rights ----------------------------------------------------------------------------------------


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
def test_the_authorizer_denies_a_user_without_rights(
    secured_cluster: Cluster, topic: str, listener: ListenerProtocol, user: str | None
) -> None:
    with Admin(secured_cluster.access(listener, user)) as admin:
        assert admin.describe_topics() == {}
        with pytest.raises(NotAuthorized, match="TOPIC_AUTHORIZATION_FAILED"):
            admin.create_topic(NewTopic(name=topic))


@pytest.mark.parametrize(
    ("request_of", "right"),
    [
        (lambda bob, name: create_topics(bob, [NewTopic(name=name)]).failed[name], "--topic"),
        (lambda bob, name: list_consumer_group_offsets(bob, [name])[name], "--group"),
        (lambda bob, name: raised(partial(describe_topic_acls, bob)), "--cluster"),
        (
            lambda bob, name: raised(partial(init_producer_id, bob, transactional_id=name)),
            "--transactional-id",
        ),
    ],
    ids=["topic", "group", "cluster", "transactional-id"],
)
def test_a_missing_right_is_named_with_its_line_for_kafka_acls(
    secured_cluster: Cluster, topic: str, request_of: Callable[[Router, str], object], right: str
) -> None:
    bob = make_router(secured_cluster.access(ListenerProtocol.SASL_SSL, "bob"))
    error = request_of(bob, topic)
    bob.close()
    assert isinstance(error, NotAuthorized)
    assert str(error).startswith("secured: ")
    assert re.search(rf"kafka-acls --add --operation \w+ {right}", str(error))


def raised(call: Callable[[], object]) -> ClusterError:
    """Return the error of a call, which must fail."""
    with pytest.raises(ClusterError) as caught:
        call()
    return caught.value


def test_writing_without_a_right_is_refused(secured_cluster: Cluster, topic: str) -> None:
    create_topic(secured_cluster.access(ListenerProtocol.SASL_SSL, "alice"), topic)
    with pytest.raises(NotAuthorized):
        write_values(secured_cluster.access(ListenerProtocol.SASL_SSL, "bob"), topic, b"refused")
    assert read_values(secured_cluster.access(ListenerProtocol.SASL_SSL, "alice"), topic) == []


def test_kafkas_own_tools_accept_the_client_properties(
    secured_cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    create_topic(secured_cluster.access(ListenerProtocol.SASL_SSL, "alice"), topic)
    trust = CertificateAuthority(secured_cluster.directory / "tls").trust_store
    properties = secured_cluster.client_properties(ListenerProtocol.SASL_SSL, "alice") | {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(trust),
        "ssl.truststore.password": STORE_PASSWORD,
    }
    config = write_properties(tmp_path / "client.properties", properties)
    servers = secured_cluster.bootstrap_servers(ListenerProtocol.SASL_SSL)
    arguments = ["--bootstrap-server", servers, "--command-config", str(config), "--list"]
    listed = KafkaToolRunner().run("kafka-topics", arguments, timeout_s=180)
    assert topic in listed.split()


def logs_in(access: ClusterAccess, login: PasswordLogin) -> bool:
    """Return whether the broker accepts a login."""
    try:
        connection = open_connection(access, login=login)
    except NotAuthorized:
        return False
    assert broker_count(connection) == 1
    connection.close()
    return True


def test_a_delegation_token_logs_in_with_scram(secured_cluster: Cluster, tmp_path: Path) -> None:
    properties = secured_cluster.client_properties(ListenerProtocol.SASL_PLAINTEXT, user="alice")
    config = write_properties(tmp_path / "client.properties", properties)
    servers = properties["bootstrap.servers"]
    options = ["--bootstrap-server", servers, "--command-config", str(config)]
    made = KafkaToolRunner().run(
        "kafka-delegation-tokens",
        [*options, "--create", "--max-life-time-period", "-1"],
        timeout_s=180,
    )
    token_id, hmac = made.splitlines()[-1].split()[:2]
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        login = PasswordLogin(
            mechanism=mechanism,
            username=token_id,
            password=Password(hmac),
            is_delegation_token=True,
        )
        access = secured_cluster.access(ListenerProtocol.SASL_PLAINTEXT)
        wait_until(partial(logs_in, access, login), "the broker to learn of the token")
        with pytest.raises(NotAuthorized):
            open_connection(access, login=replace(login, is_delegation_token=False))
