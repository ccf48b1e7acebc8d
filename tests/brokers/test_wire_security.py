"""Listeners of every kind: let in when all is right, told why within moments when it is not."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Mapping
from typing import Any

import pytest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.cluster.access import Access
from sparkmirror.cluster.record import NewRecord
from sparkmirror.cluster.records import produce as write_records
from sparkmirror.errors import ClusterError, ClusterUnavailable, NotAuthorized
from sparkmirror.lab.cluster import Cluster
from sparkmirror.lab.spec import ClusterSpec, Listener
from sparkmirror.model import TopicPartition
from sparkmirror.wire.connection import Client, Connection
from sparkmirror.wire.messages import METADATA
from sparkmirror.wire.place import Address
from tests.support.clusters import StartCluster, create_topic
from tests.support.pace import shortest_s
from tests.support.raw_copy import RawCopy, client_of, first_connection, log_of, router_of

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
            listeners=tuple(Listener),
            mutual_tls=True,
            users={"ann": "ann-secret"},
            properties={
                "listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms": str(SESSION_MS)
            },
        )
    )


def ask(connection: Connection) -> int:
    question = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    return len(connection.call(METADATA, question).brokers)


def open_door(access: Access, **changes: object) -> Connection:
    """Connect with some of the settings changed; None takes one away."""
    words: Mapping[str, Any] = client_of(access).security
    security = {k: v for k, v in {**words, **changes}.items() if v is not None}
    client = Client(cluster=access.cluster, security=security)
    return Connection.open(client, Address(*access.bootstrap[0]))


def refused(access: Access, kind: type[ClusterError], **changes: object) -> str:
    """Be refused quickly, and return what was said."""
    said: list[str] = []

    def knock() -> None:
        with pytest.raises(kind) as caught:
            open_door(access, **changes).close()
        assert type(caught.value) is kind
        assert "ann-secret" not in str(caught.value)
        said.append(str(caught.value))

    assert shortest_s(knock) < 3
    return said[-1]


@pytest.mark.parametrize("listener", [Listener.PLAINTEXT, Listener.SSL], ids=str)
def test_a_door_without_users_opens(castle: Cluster, listener: Listener) -> None:
    connection = first_connection(castle.access(listener))
    assert ask(connection) == 1
    connection.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL], ids=str)
def test_a_user_is_let_in(castle: Cluster, listener: Listener, mechanism: str) -> None:
    connection = first_connection(castle.access(listener, "ann", mechanism))
    assert ask(connection) == 1
    connection.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_wrong_password_is_said_at_once(castle: Cluster, mechanism: str) -> None:
    access = castle.access(Listener.SASL_SSL, "ann", mechanism)
    said = refused(access, NotAuthorized, sasl_plain_password="wrong")
    assert f"{mechanism} login failed: Authentication failed" in said
    assert "castle: SASL_SSL 127.0.0.1:" in said


def test_a_mechanism_that_is_not_offered_is_answered_with_those_that_are(castle: Cluster) -> None:
    said = refused(
        castle.access(Listener.SASL_SSL, "ann"), NotAuthorized, sasl_mechanism="OAUTHBEARER"
    )
    assert "it does not take OAUTHBEARER, it offers" in said
    assert "SCRAM-SHA-512" in said


def test_a_foreign_certificate_is_not_trusted(castle: Cluster) -> None:
    stranger = ssl.create_default_context()
    said = refused(castle.access(Listener.SASL_SSL), NotAuthorized, ssl_context=stranger)
    assert "its certificate is not accepted" in said


def test_a_client_without_certificate_is_told_so(castle: Cluster) -> None:
    trusting = ssl.create_default_context(
        cafile=castle.client_properties(Listener.SSL)["ssl.truststore.location"]
    )
    said = refused(castle.access(Listener.SSL), NotAuthorized, ssl_context=trusting)
    assert "TLS failed" in said
    assert "certificate" in said


def test_the_wrong_protocol_points_at_the_port(castle: Cluster) -> None:
    nothing = {"sasl_mechanism": None, "ssl_context": None}
    plain = {"security_protocol": "PLAINTEXT", **nothing}
    for access in (castle.access(Listener.SSL), castle.access(Listener.SASL_SSL)):
        assert "right port" in refused(access, ClusterUnavailable, **plain)
    tls = castle.access(Listener.SSL).security.keywords()
    for listener in (Listener.PLAINTEXT, Listener.SASL_PLAINTEXT):
        said = refused(castle.access(listener), ClusterUnavailable, **tls)
        assert "it closed the connection, before it said anything" in said


def test_a_door_with_users_does_not_open_without_a_login(castle: Cluster) -> None:
    connection = open_door(castle.access(Listener.SASL_PLAINTEXT), security_protocol="PLAINTEXT")
    with pytest.raises(ClusterUnavailable, match="closed the connection"):
        ask(connection)


def test_a_session_that_ends_is_renewed_in_time(castle: Cluster) -> None:
    access = castle.access(Listener.SASL_SSL, "ann", "SCRAM-SHA-256")
    assert any(outlives_its_session(access) for _ in range(TRIES))


def outlives_its_session(access: Access) -> bool:
    """Ask all the time until the first session is long over.

    False if we ourselves stood still for so long that there was no time to renew it.
    """
    connection = first_connection(access)
    heard = time.monotonic()
    until = heard + 1.3 * SESSION_MS / 1000
    try:
        while heard < until:
            assert ask(connection) == 1
            heard = time.monotonic()
            time.sleep(0.02)
    except ClusterUnavailable:
        if time.monotonic() - heard < EARLY_S:
            raise
        return False
    finally:
        connection.close()
    return True


@pytest.mark.parametrize("listener", [Listener.SSL, Listener.SASL_SSL], ids=str)
def test_what_is_copied_over_tls_is_the_same(
    castle: Cluster, listener: Listener, topic: str
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
        [NewRecord(value=value, partition=n % 2) for n, value in enumerate(values)],
    )
    router = router_of(access)
    RawCopy(router, router, topics, (16, 13)).run(len(values))
    for index in range(2):
        original = log_of(router, TopicPartition(topics[0], index))
        assert sum(len(batch.body) for batch in original) > 100_000
        assert log_of(router, TopicPartition(topics[1], index)) == original
    router.close()
