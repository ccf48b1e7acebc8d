"""A connection to a fake broker that sends wrong responses, late responses or none."""

from __future__ import annotations

import logging
import re
import selectors
import threading
import time
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.config.secrets.password import Password
from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    ConfigError,
    NotAuthorized,
    UnsupportedByBroker,
)
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import (
    BearerToken,
    PasswordLogin,
    TokenLogin,
    TokenUnavailable,
)
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import MIN_POOLED_BYTES, BufferPool, MemoryBudget
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import DESCRIBE_PRODUCERS, METADATA
from sparkmirror.wire.protocol.produce import OutgoingBatch, produce_request
from sparkmirror.wire.protocol.request import ClientRequest
from tests.support.kafka.fake_broker import (
    CloseConnection,
    FakeBroker,
    ReceivedRequest,
    Reply,
    api_versions_reply,
    close_connection,
    length_prefixed,
    no_reply,
    raw_reply,
    response_reply,
    truncated_reply,
)
from tests.support.reserved_port import reserved_port

LATE_S = 2.0
CLIENT = ClientConfig(cluster="primary", client_id="tester")
SASL = ClientConfig(
    cluster="primary",
    security=ClientSecurity(
        protocol="SASL_PLAINTEXT",
        login=PasswordLogin(mechanism="PLAIN", username="ann", password=Password("pw")),
    ),
)


def metadata(number: int = 1, throttle_time_ms: int = 0) -> MetadataResponse:
    return MetadataResponse(
        brokers=[],
        topics=[],
        cluster_id="c",
        controller_id=number,
        throttle_time_ms=throttle_time_ms,
    )


def fail_on_response(answer: object) -> None:
    pytest.fail(f"answered although it cannot be: {answer}")


def metadata_request(connection: BrokerConnection) -> ClientRequest[MetadataResponse]:
    return METADATA.build_request(MetadataRequest(topics=[]), connection.api_versions)


def fetch_controller_id(connection: BrokerConnection, timeout_s: float = 50.0) -> int:
    return connection.send_and_wait(metadata_request(connection), timeout_s).controller_id


def test_a_connection_agrees_on_versions_and_sends_requests() -> None:
    with FakeBroker([response_reply(metadata(7))]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        assert connection.api_versions.ranges[1] == (4, 18)
        assert fetch_controller_id(connection) == 7
        connection.close()
    assert broker.api_keys() == [18, 3]
    assert {received.client_id for received in broker.requests} == {"tester"}
    assert broker.requests[1].version == 13


def test_debug_lines_name_the_broker_that_is_connected_and_why_the_connection_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "sparkmirror.wire")
    with FakeBroker([close_connection]) as broker:
        lost = BrokerConnection.open(CLIENT, broker.address)
        with pytest.raises(ClusterUnavailable) as error:
            fetch_controller_id(lost)
        lost.close()
    with FakeBroker() as broker_2:
        BrokerConnection.open(CLIENT, broker_2.address).close()
    assert caplog.messages == [
        f"Connected to primary, PLAINTEXT {broker.address}, as client tester",
        f"The connection ends with an error: {error.value}",
        f"Connected to primary, PLAINTEXT {broker_2.address}, as client tester",
        f"This client closes its connection to primary, PLAINTEXT {broker_2.address}",
    ]


def test_api_versions_is_sent_again_in_the_version_of_an_older_broker() -> None:
    key = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)

    def unsupported_version(received: ReceivedRequest) -> bytes:
        refusal: Any = ApiVersionsResponse(error_code=35, api_keys=[key])
        return length_prefixed(
            received.correlation_id.to_bytes(4, "big") + refusal.encode(version=0)
        )

    with FakeBroker(
        [unsupported_version, api_versions_reply({18: (0, 2), 3: (0, 7)})], sends_api_versions=False
    ) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        assert connection.api_versions.ranges == {18: (0, 2), 3: (0, 7)}
        with pytest.raises(UnsupportedByBroker, match="does not support DescribeProducers"):
            DESCRIBE_PRODUCERS.build_request(
                DESCRIBE_PRODUCERS.request_type(topics=[]), connection.api_versions
            )
        connection.close()
    assert [received.version for received in broker.requests] == [4, 2]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (raw_reply(b"\x15\x03\x03\x00\x02\x02\x50"), "announces an answer of 352518912 bytes"),
        (raw_reply(b"HTTP/1.1 400 Bad Request"), "it answers in HTTP"),
        (raw_reply(b"\xff\xff\xff\xff"), "announces an answer of -1 bytes"),
        (raw_reply(b"\x00\x00\x00\x03abc"), "announces an answer of 3 bytes"),
        (close_connection, "it closed the connection, before its first response"),
        (
            truncated_reply(api_versions_reply()),
            "it closed the connection, before its first response",
        ),
        (raw_reply(length_prefixed(b"\x00\x00\x00\x01\x00")), "cannot be read"),
    ],
    ids=["tls", "http", "negative", "too-small", "closes", "half", "unreadable"],
)
def test_a_wrong_first_response_names_the_port(reply: Reply, text: str) -> None:
    with FakeBroker([reply], sends_api_versions=False) as broker:
        started = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=text) as caught:
            BrokerConnection.open(CLIENT, broker.address, timeout_s=50)
        assert time.monotonic() - started < 25, "it waited for more bytes"
        assert "right port for that security protocol" in str(caught.value)
        assert f"PLAINTEXT {broker.address}" in str(caught.value)


def test_opening_a_connection_to_a_silent_broker_ends_in_time() -> None:
    with FakeBroker([no_reply], sends_api_versions=False) as broker:
        started, timeout_s, message = time.monotonic(), 0.05, ""
        while not broker.requests:  # a slow computer may not even connect in time
            with pytest.raises(ClusterTimeout) as caught:
                BrokerConnection.open(CLIENT, broker.address, timeout_s=timeout_s)
            timeout_s, message = 2 * timeout_s, str(caught.value)
        assert "no answer to ApiVersions in time" in message
        assert time.monotonic() - started < 25


def test_a_refused_connection_is_reported_at_once() -> None:
    refused = "primary: PLAINTEXT .*: connection refused"
    with reserved_port() as port, pytest.raises(ClusterUnavailable, match=refused):
        BrokerConnection.open(CLIENT, Address("127.0.0.1", port))
    with pytest.raises(ClusterUnavailable, match="host name cannot be resolved"):
        BrokerConnection.open(CLIENT, Address("no-such-host.invalid", 9092))


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (response_reply(metadata(), correlation_off_by=1), "answered request 3, not 2"),
        (raw_reply(b"\x7f\xff\xff\xff"), "announces an answer of 2147483647 bytes"),
        (truncated_reply(response_reply(metadata())), "closed the connection|reset by peer"),
        (close_connection, "closed the connection|reset by peer"),
        (
            raw_reply(length_prefixed(b"\x00\x00\x00\x02\x00garbage")),
            "Metadata version 13 cannot be read",
        ),
    ],
    ids=["correlation", "huge", "half", "closes", "garbage"],
)
def test_a_wrong_response_ends_the_connection_and_fails_each_request_once(
    reply: Reply, text: str
) -> None:
    lost: list[ClusterError] = []
    with FakeBroker([reply]) as broker:
        pool = BufferPool(MemoryBudget(1 << 20))
        connection = BrokerConnection.open(CLIENT, broker.address, pool=pool)
        deadline = time.monotonic() + 50
        for _ in range(2):
            connection.send(
                metadata_request(connection),
                on_response=fail_on_response,
                on_error=lost.append,
                deadline=deadline,
            )
        with pytest.raises(ClusterUnavailable, match=text):
            while True:
                connection.poll()
        assert connection.is_closed
        connection.close()
        with pytest.raises(ClusterUnavailable, match="is closed"):
            fetch_controller_id(connection)
    assert len(lost) == 2
    assert all(re.search(text, str(error)) for error in lost)
    assert pool.budget.used == 0


def test_a_response_without_a_request_ends_the_connection() -> None:
    def twice(received: ReceivedRequest) -> bytes:
        return response_reply(metadata())(received) * 2

    with FakeBroker([twice]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        answers: list[object] = []
        deadline = time.monotonic() + 50
        connection.send(metadata_request(connection), on_response=answers.append, deadline=deadline)
        with pytest.raises(ClusterUnavailable, match="without a request"):
            while True:
                connection.poll()
        assert connection.is_closed
    assert len(answers) == 1


def test_an_idle_connection_is_closed_when_the_broker_closes_it() -> None:
    with FakeBroker([response_reply(metadata())]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        assert fetch_controller_id(connection) == 1
    with pytest.raises(ClusterUnavailable, match="it closed the connection; check whether"):
        connection.on_readable()
    assert connection.is_closed


def test_the_last_response_before_a_close_is_received() -> None:
    def respond_and_close(received: ReceivedRequest) -> bytes:
        raise CloseConnection(response_reply(metadata(9))(received))

    with FakeBroker([respond_and_close]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        time.sleep(0.01)
        assert fetch_controller_id(connection) == 9
        connection.close()


def test_responses_in_one_packet_are_received_in_order() -> None:
    later: list[bytes] = []

    def delay(received: ReceivedRequest) -> bytes:
        later.append(response_reply(metadata(len(later)))(received))
        return b""

    def all_at_once(received: ReceivedRequest) -> bytes:
        return b"".join([*later, response_reply(metadata(2))(received)])

    answers: list[int] = []
    with FakeBroker([delay, delay, all_at_once]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        deadline = time.monotonic() + 50
        for _ in range(3):
            connection.send(
                metadata_request(connection),
                on_response=lambda answer: answers.append(answer.controller_id),
                deadline=deadline,
            )
        assert connection.in_flight_count == 3
        while connection.in_flight_count:
            connection.poll()
        connection.close()
    assert answers == [0, 1, 2]


def test_a_selector_is_enough_to_send_and_receive() -> None:
    batch = bytes(30 << 20)  # more than the kernel takes at once

    def acknowledge(received: ReceivedRequest) -> bytes:
        assert len(received.body) > len(batch)
        return length_prefixed(
            received.correlation_id.to_bytes(4, "big")
            + b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01"
            + bytes(6)
            + (77).to_bytes(8, "big")
            + bytes(16)
            + bytes(4)
        )

    answers: list[Any] = []
    with FakeBroker([acknowledge]) as broker, selectors.DefaultSelector() as selector:
        connection = BrokerConnection.open(CLIENT, broker.address)
        request = produce_request(7, [OutgoingBatch("t", 0, [batch])], timeout_ms=100)
        connection.send(request, on_response=answers.append, deadline=time.monotonic() + 10)
        wanted = [connection.wants_write]
        while not answers:
            write = selectors.EVENT_WRITE if connection.wants_write else 0
            selector.register(connection, selectors.EVENT_READ | write)
            for _, events in selector.select(5):
                if events & selectors.EVENT_WRITE:
                    connection.on_writable()
                if events & selectors.EVENT_READ:
                    connection.on_readable()
            selector.unregister(connection)
        wanted.append(connection.wants_write)
        connection.close()
    assert wanted == [True, False]
    assert answers[0].partition_responses["t", 0].base_offset == 77


def test_a_late_response_ends_the_connection() -> None:
    lost: list[ClusterError] = []
    with FakeBroker([no_reply]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        now = time.monotonic()
        assert not connection.has_expired(now + 1e9)
        connection.send(
            metadata_request(connection),
            on_response=fail_on_response,
            on_error=lost.append,
            deadline=now + 5,
        )
        assert not connection.has_expired(now + 4.9)
        connection.close_if_expired(now + 4.9)
        assert connection.has_expired(now + 5)
        with pytest.raises(ClusterTimeout, match="no answer to Metadata in time"):
            connection.close_if_expired(now + 5)
        assert connection.is_closed
    assert [type(error) for error in lost] == [ClusterTimeout]


def test_throttling_mutes_the_connection_and_moves_deadlines() -> None:
    with FakeBroker([response_reply(metadata(1, throttle_time_ms=60_000)), no_reply]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        now = time.monotonic()
        answered: list[object] = []
        connection.send(
            metadata_request(connection), on_response=answered.append, deadline=now + 30
        )
        connection.send(
            metadata_request(connection), on_response=fail_on_response, deadline=now + 30
        )
        while not answered:
            connection.poll()
        assert now + 59 < connection.throttled_until < time.monotonic() + 61
        assert not connection.has_expired(now + 85)
        assert connection.has_expired(time.monotonic() + 91)
        connection.send(
            metadata_request(connection), on_response=fail_on_response, deadline=now + 1
        )
        assert not connection.has_expired(now + 59)
        connection.close()


def test_closing_fails_the_requests_in_flight_once() -> None:
    lost: list[ClusterError] = []
    with FakeBroker([no_reply]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address)
        connection.send(
            metadata_request(connection),
            on_response=fail_on_response,
            on_error=lost.append,
            deadline=time.monotonic() + 50,
        )
        connection.close()
        connection.close()
    assert [type(error) for error in lost] == [ClusterUnavailable]


def test_frames_are_allocated_from_the_pool_and_released() -> None:
    big = metadata()
    big.cluster_id = "c" * MIN_POOLED_BYTES
    pool = BufferPool(MemoryBudget(1 << 30))
    with FakeBroker([response_reply(big), response_reply(big)]) as broker:
        connection = BrokerConnection.open(CLIENT, broker.address, pool=pool)
        assert pool.budget.used == 0
        fetch_controller_id(connection)
        kept = pool.idle_bytes
        assert kept > MIN_POOLED_BYTES
        fetch_controller_id(connection)
        assert (pool.idle_bytes, pool.budget.used) == (kept, 0)
        connection.close()


# -- SASL -----------------------------------------------------------------------------------------


def handshake_reply(code: int = 0, *mechanisms: str) -> Reply:
    return response_reply(SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms)))


def authenticate_reply(life_ms: int = 0, code: int = 0, message: str | None = None) -> Reply:
    return response_reply(
        SaslAuthenticateResponse(
            error_code=code, error_message=message, auth_bytes=b"", session_lifetime_ms=life_ms
        )
    )


def test_a_login_sends_a_handshake_and_the_credentials() -> None:
    with FakeBroker(
        [handshake_reply(), authenticate_reply(), response_reply(metadata())]
    ) as broker:
        connection = BrokerConnection.open(SASL, broker.address)
        assert fetch_controller_id(connection) == 1
        connection.close()
    assert broker.api_keys() == [18, 17, 36, 3]
    assert b"PLAIN" in broker.requests[1].body
    assert b"ann\x00ann\x00pw" in broker.requests[2].body


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([handshake_reply(33, "SCRAM-SHA-512", "GSSAPI")], "it offers SCRAM-SHA-512, GSSAPI"),
        ([handshake_reply(34)], "handshake failed: ILLEGAL_SASL_STATE"),
        (
            [handshake_reply(), authenticate_reply(code=58, message="Authentication failed: bad")],
            "failed: bad",
        ),
        ([handshake_reply(), authenticate_reply(code=58)], r"SASL_AUTHENTICATION_FAILED \(58\)"),
    ],
    ids=["mechanism", "state", "password", "no-message"],
)
def test_a_refused_login_has_its_reason(replies: list[Reply], text: str) -> None:
    with FakeBroker(replies) as broker:
        with pytest.raises(NotAuthorized, match=text) as caught:
            BrokerConnection.open(SASL, broker.address)
        assert "SASL_PLAINTEXT" in str(caught.value)
        assert "pw" not in str(caught.value).split()


class _NoTokens:
    """A token source whose server does not answer."""

    def token(self, host: str) -> BearerToken:
        raise TokenUnavailable("the token endpoint does not answer")


class _LateTokens:
    """A token source whose first token takes longer than a connection may."""

    def token(self, host: str) -> BearerToken:
        time.sleep(LATE_S)
        return BearerToken(value=Password("late"))


def test_a_token_that_arrives_too_late_is_not_said_to_be_a_silent_broker() -> None:
    security = ClientSecurity(protocol="SASL_PLAINTEXT", login=TokenLogin(tokens=_LateTokens()))
    client = ClientConfig(cluster="primary", security=security)
    with (
        FakeBroker([handshake_reply()]) as broker,
        pytest.raises(ClusterTimeout, match="the login took too long to prepare"),
    ):
        BrokerConnection.open(client, broker.address, timeout_s=LATE_S)


def test_a_token_that_cannot_be_had_makes_a_broker_unavailable_not_the_login_refused() -> None:
    security = ClientSecurity(protocol="SASL_PLAINTEXT", login=TokenLogin(tokens=_NoTokens()))
    client = ClientConfig(cluster="primary", security=security)
    with (
        FakeBroker([handshake_reply()]) as broker,
        pytest.raises(ClusterUnavailable, match="token endpoint does not answer"),
    ):
        BrokerConnection.open(client, broker.address)


class _ChangingSecurity:
    """Settings that cannot be read the first time."""

    protocol = "PLAINTEXT"

    def __init__(self) -> None:
        self.reads = 0

    def current(self) -> ClientSecurity:
        self.reads += 1
        if self.reads == 1:
            raise ConfigError.of("ssl.truststore.location", "the file is gone")
        return ClientSecurity()


def test_each_connection_reads_the_settings_again() -> None:
    client = ClientConfig(cluster="primary", security=_ChangingSecurity())
    with FakeBroker([]) as broker:
        with pytest.raises(ClusterUnavailable, match="the file is gone"):
            BrokerConnection.open(client, broker.address)
        BrokerConnection.open(client, broker.address).close()


def test_a_session_is_renewed_after_requests_in_flight_and_before_new_ones() -> None:
    release = threading.Event()

    def slow_reply(received: ReceivedRequest) -> bytes:
        release.wait(50)
        return response_reply(metadata(1))(received)

    replies = [
        *(handshake_reply(), authenticate_reply(life_ms=3000), slow_reply),
        *(handshake_reply(), authenticate_reply(life_ms=3_600_000)),
        *(response_reply(metadata(2)), response_reply(metadata(3))),
    ]
    answers: list[int] = []
    with FakeBroker(replies) as broker:
        connection = BrokerConnection.open(SASL, broker.address)
        deadline = time.monotonic() + 50
        for number in range(3):
            if number == 1:
                time.sleep(3.0)
                release.set()
            connection.send(
                metadata_request(connection),
                on_response=lambda answer: answers.append(answer.controller_id),
                deadline=deadline,
            )
        assert connection.in_flight_count == 4
        while connection.in_flight_count:
            connection.poll()
        connection.close()
    assert broker.api_keys() == [18, 17, 36, 3, 17, 36, 3, 3]
    assert answers == [1, 2, 3]


def test_a_session_that_cannot_be_renewed_ends_the_connection() -> None:
    lost: list[ClusterError] = []
    refused = authenticate_reply(code=58, message="expired")
    with FakeBroker(
        [handshake_reply(), authenticate_reply(life_ms=10), handshake_reply(), refused]
    ) as broker:
        connection = BrokerConnection.open(SASL, broker.address)
        time.sleep(0.02)
        connection.send(
            metadata_request(connection),
            on_response=fail_on_response,
            on_error=lost.append,
            deadline=time.monotonic() + 50,
        )
        with pytest.raises(NotAuthorized, match="expired"):
            while True:
                connection.poll()
    assert [type(error) for error in lost] == [NotAuthorized]
    assert connection.is_closed
