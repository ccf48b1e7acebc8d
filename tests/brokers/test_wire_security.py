"""Listeners of every kind: let in when all is right, told why within moments when it is not."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Mapping
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.cluster.access import ClusterAccess
from sparkmirror.cluster.topic_contents import ProducerRecord
from sparkmirror.cluster.topic_contents import produce_records as write_records
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized
from sparkmirror.lab.cluster.cluster import Cluster
from sparkmirror.lab.cluster.cluster_spec import ClusterSpec, ListenerProtocol
from sparkmirror.model import TopicPartition
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import METADATA
from tests.support.kafka.clusters import StartCluster, create_topic
from tests.support.kafka.wire_copier import (
    WireCopier,
    connect_first_broker,
    make_router,
    read_stored_batches,
    wire_client,
)
from tests.support.timing import fastest_run_s

SESSION_MS = 5000
"""Brokers refuse to renew a session within its first second."""
EARLY_S = 0.4
"""A session is renewed at least so long before it ends: a tenth of it, but for a moment."""
TRIES = 5
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def castle(start_module_cluster: StartCluster) -> Cluster:
    """One broker with every kind of door; SCRAM-SHA-256 over TLS ends after a moment."""
    return start_module_cluster(
        ClusterSpec(
            name="castle",
            fast_start=True,
            listeners=tuple(ListenerProtocol),
            mutual_tls=True,
            users={"ann": "ann-secret"},
            properties={
                "listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS)
            },
        )
    )


def broker_count(connection: BrokerConnection) -> int:
    question = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    return len(connection.call(METADATA, question).brokers)


def open_connection(access: ClusterAccess, **changes: object) -> BrokerConnection:
    """Connect with some of the settings changed; None takes one away."""
    words: Mapping[str, Any] = wire_client(access).security
    security = {k: v for k, v in {**words, **changes}.items() if v is not None}
    client = ClientConfig(cluster=access.cluster, security=security)
    return BrokerConnection.open(client, Address(*access.bootstrap_servers[0]))


def connection_error(access: ClusterAccess, kind: type[ClusterError], **changes: object) -> str:
    """Be refused quickly, and return what was said."""
    said: list[str] = []

    def knock() -> None:
        with pytest.raises(kind) as caught:
            open_connection(access, **changes).close()
        assert type(caught.value) is kind
        assert "ann-secret" not in str(caught.value)
        said.append(str(caught.value))

    assert fastest_run_s(knock) < 3
    return said[-1]


@pytest.mark.parametrize("listener", [ListenerProtocol.PLAINTEXT, ListenerProtocol.SSL], ids=str)
def test_a_door_without_users_opens(castle: Cluster, listener: ListenerProtocol) -> None:
    connection = connect_first_broker(castle.access(listener))
    assert broker_count(connection) == 1
    connection.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "listener", [ListenerProtocol.SASL_PLAINTEXT, ListenerProtocol.SASL_SSL], ids=str
)
def test_a_user_is_let_in(castle: Cluster, listener: ListenerProtocol, mechanism: str) -> None:
    connection = connect_first_broker(castle.access(listener, "ann", mechanism))
    assert broker_count(connection) == 1
    connection.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_at_once(castle: Cluster, mechanism: str) -> None:
    access = castle.access(ListenerProtocol.SASL_SSL, "ann", mechanism)
    said = connection_error(access, NotAuthorized, sasl_plain_password="wrong")
    assert f"{mechanism} login failed: Authentication failed" in said
    assert "castle: SASL_SSL 127.0.0.1:" in said


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are(castle: Cluster) -> None:
    said = connection_error(
        castle.access(ListenerProtocol.SASL_SSL, "ann"), NotAuthorized, sasl_mechanism="OAUTHBEARER"
    )
    assert "it does not take OAUTHBEARER, it offers" in said
    assert "SCRAM-SHA-512" in said


def test_a_foreign_certificate_is_not_trusted(castle: Cluster) -> None:
    stranger = ssl.create_default_context()
    said = connection_error(
        castle.access(ListenerProtocol.SASL_SSL), NotAuthorized, ssl_context=stranger
    )
    assert "its certificate is not accepted" in said


def test_a_client_without_certificate_is_told_so(castle: Cluster) -> None:
    trusting = ssl.create_default_context(
        cafile=castle.client_properties(ListenerProtocol.SSL)["ssl.truststore.location"]
    )
    said = connection_error(
        castle.access(ListenerProtocol.SSL), NotAuthorized, ssl_context=trusting
    )
    assert "TLS failed" in said
    assert "certificate" in said


def test_the_wrong_protocol_points_at_the_port(castle: Cluster) -> None:
    nothing = {"sasl_mechanism": None, "ssl_context": None}
    plain = {"security_protocol": "PLAINTEXT", **nothing}
    for access in (castle.access(ListenerProtocol.SSL), castle.access(ListenerProtocol.SASL_SSL)):
        assert "right port" in connection_error(access, ClusterUnavailable, **plain)
    tls = castle.access(ListenerProtocol.SSL).security.client_kwargs()
    for listener in (ListenerProtocol.PLAINTEXT, ListenerProtocol.SASL_PLAINTEXT):
        said = connection_error(castle.access(listener), ClusterUnavailable, **tls)
        assert "it closed the connection, before it said anything" in said


def test_a_door_with_users_does_not_open_without_a_login(castle: Cluster) -> None:
    connection = open_connection(
        castle.access(ListenerProtocol.SASL_PLAINTEXT), security_protocol="PLAINTEXT"
    )
    with pytest.raises(ClusterUnavailable, match="closed the connection"):
        broker_count(connection)


def test_a_session_that_ends_is_renewed_in_time(castle: Cluster) -> None:
    access = castle.access(ListenerProtocol.SASL_SSL, "ann", "SCRAM-SHA-256")
    assert any(outlives_its_session(access) for _ in range(TRIES))


def outlives_its_session(access: ClusterAccess) -> bool:
    """Ask all the time until the first session is long over.

    False if we ourselves stood still for so long that there was no time to renew it.
    """
    connection = connect_first_broker(access)
    heard = time.monotonic()
    until = heard + 1.3 * SESSION_MS / 1000
    try:
        while heard < until:
            assert broker_count(connection) == 1
            heard = time.monotonic()
            time.sleep(0.02)
    except ClusterUnavailable:
        if time.monotonic() - heard < EARLY_S:
            raise
        return False
    finally:
        connection.close()
    return True


@pytest.mark.parametrize("listener", [ListenerProtocol.SSL, ListenerProtocol.SASL_SSL], ids=str)
def test_what_is_copied_over_tls_is_the_same(
    castle: Cluster, listener: ListenerProtocol, topic: str
) -> None:
    access = castle.access(listener, "ann", "SCRAM-SHA-512")
    topics = (f"{topic}.from", f"{topic}.to")
    for name in topics:
        create_topic(access, name, partitions=2)
    rng = random.Random(1)
    values = [rng.randbytes(rng.randrange(1, 150_000)) for _ in range(12)]
    write_records(
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
