"""A connection against a broker that misbehaves on demand."""

from __future__ import annotations

import re
import selectors
import threading
import time
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    UnsupportedByBroker,
)
from sparkmirror.wire.buffers import SMALL_BYTES, Budget, Pool
from sparkmirror.wire.connection import Client, Connection
from sparkmirror.wire.messages import DESCRIBE_PRODUCERS, METADATA
from sparkmirror.wire.place import Address
from sparkmirror.wire.produce import OutgoingBatch, produce_request
from sparkmirror.wire.request import Request
from tests.support.fake_broker import (
    FakeBroker,
    HangUp,
    Heard,
    Reply,
    answering,
    frame,
    greeting,
    hang_up,
    saying,
    saying_half,
    silence,
)

CLIENT = Client(cluster="primary", client_id="tester")
SASL = Client(
    cluster="primary",
    security={
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
        "sasl_plain_password": "pw",
    },
)


def metadata(number: int = 1, throttle_time_ms: int = 0) -> MetadataResponse:
    return MetadataResponse(
        brokers=[],
        topics=[],
        cluster_id="c",
        controller_id=number,
        throttle_time_ms=throttle_time_ms,
    )


def never(answer: object) -> None:
    pytest.fail(f"answered although it cannot be: {answer}")


def question(connection: Connection) -> Request[MetadataResponse]:
    return METADATA.ask(MetadataRequest(topics=[]), connection.versions)


def ask(connection: Connection, timeout_s: float = 50.0) -> int:
    return connection.wait_for(question(connection), timeout_s).controller_id


def test_opening_agrees_on_versions_and_calls_are_answered() -> None:
    with FakeBroker([answering(metadata(7))]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        assert connection.versions.ranges[1] == (4, 18)
        assert ask(connection) == 7
        connection.close()
    assert broker.api_keys() == [18, 3]
    assert {heard.client_id for heard in broker.heard} == {"tester"}
    assert broker.heard[1].version == 13


def test_a_broker_older_than_us_is_greeted_again_in_its_own_version() -> None:
    key = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=2)

    def too_new(heard: Heard) -> bytes:
        refusal: Any = ApiVersionsResponse(error_code=35, api_keys=[key])
        return frame(heard.correlation_id.to_bytes(4, "big") + refusal.encode(version=0))

    with FakeBroker([too_new, greeting({18: (0, 2), 3: (0, 7)})], greets=False) as broker:
        connection = Connection.open(CLIENT, broker.address)
        assert connection.versions.ranges == {18: (0, 2), 3: (0, 7)}
        with pytest.raises(UnsupportedByBroker, match="does not know DescribeProducers"):
            DESCRIBE_PRODUCERS.ask(DESCRIBE_PRODUCERS.question(topics=[]), connection.versions)
        connection.close()
    assert [heard.version for heard in broker.heard] == [4, 2]


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (saying(b"\x15\x03\x03\x00\x02\x02\x50"), "announces an answer of 352518912 bytes"),
        (saying(b"HTTP/1.1 400 Bad Request"), "announces an answer of 1213486160 bytes"),
        (saying(b"\xff\xff\xff\xff"), "announces an answer of -1 bytes"),
        (saying(b"\x00\x00\x00\x03abc"), "announces an answer of 3 bytes"),
        (hang_up, "it closed the connection, before it said anything"),
        (saying_half(greeting()), "it closed the connection, before it said anything"),
        (saying(frame(b"\x00\x00\x00\x01\x00")), "cannot be read"),
    ],
    ids=["tls", "http", "negative", "too-small", "closes", "half", "unreadable"],
)
def test_a_strange_greeting_points_at_the_port(reply: Reply, text: str) -> None:
    with FakeBroker([reply], greets=False) as broker:
        started = time.monotonic()
        with pytest.raises(ClusterUnavailable, match=text) as caught:
            Connection.open(CLIENT, broker.address, timeout_s=50)
        assert time.monotonic() - started < 25, "it waited for more"
        assert "right port for that security protocol" in str(caught.value)
        assert f"PLAINTEXT {broker.address}" in str(caught.value)


def test_a_mute_broker_costs_no_more_than_the_time_given() -> None:
    with FakeBroker([silence], greets=False) as broker:
        started = time.monotonic()
        with pytest.raises(ClusterTimeout, match="no answer to ApiVersions in time"):
            Connection.open(CLIENT, broker.address, timeout_s=0.05)
        assert time.monotonic() - started < 25


def test_nobody_there_is_said_at_once() -> None:
    with FakeBroker() as broker:
        gone = broker.address
    with pytest.raises(ClusterUnavailable, match="primary: PLAINTEXT .*: connection refused"):
        Connection.open(CLIENT, gone)
    with pytest.raises(ClusterUnavailable, match="host name cannot be resolved"):
        Connection.open(CLIENT, Address("no-such-host.invalid", 9092))


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (answering(metadata(), correlation_off_by=1), "answered request 3, not 2"),
        (saying(b"\x7f\xff\xff\xff"), "announces an answer of 2147483647 bytes"),
        (saying_half(answering(metadata())), "closed the connection|reset by peer"),
        (hang_up, "closed the connection|reset by peer"),
        (saying(frame(b"\x00\x00\x00\x02\x00garbage")), "Metadata version 13 cannot be read"),
    ],
    ids=["correlation", "huge", "half", "closes", "garbage"],
)
def test_nonsense_ends_the_connection_and_loses_the_request_once(reply: Reply, text: str) -> None:
    lost: list[ClusterError] = []
    with FakeBroker([reply]) as broker:
        pool = Pool(Budget(1 << 20))
        connection = Connection.open(CLIENT, broker.address, pool=pool)
        deadline = time.monotonic() + 50
        for _ in range(2):
            connection.send(question(connection), then=never, lost=lost.append, deadline=deadline)
        with pytest.raises(ClusterUnavailable, match=text):
            while True:
                connection.wait()
        assert connection.is_closed
        connection.close()
        with pytest.raises(ClusterUnavailable, match="is closed"):
            ask(connection)
    assert len(lost) == 2
    assert all(re.search(text, str(error)) for error in lost)
    assert pool.budget.used == 0


def test_bytes_that_nobody_asked_for_end_the_connection() -> None:
    def twice(heard: Heard) -> bytes:
        return answering(metadata())(heard) * 2

    with FakeBroker([twice]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        answers: list[object] = []
        deadline = time.monotonic() + 50
        connection.send(question(connection), then=answers.append, deadline=deadline)
        with pytest.raises(ClusterUnavailable, match="that nobody asked for"):
            while True:
                connection.wait()
        assert connection.is_closed
    assert len(answers) == 1


def test_an_idle_connection_that_the_broker_closes_is_noticed() -> None:
    with FakeBroker([answering(metadata())]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        assert ask(connection) == 1
    with pytest.raises(ClusterUnavailable, match="it closed the connection; check whether"):
        connection.on_readable()
    assert connection.is_closed


def test_last_words_count_although_the_broker_hangs_up() -> None:
    def farewell(heard: Heard) -> bytes:
        raise HangUp(answering(metadata(9))(heard))

    with FakeBroker([farewell]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        time.sleep(0.01)
        assert ask(connection) == 9
        connection.close()


def test_answers_come_in_order_however_they_are_cut() -> None:
    later: list[bytes] = []

    def keep(heard: Heard) -> bytes:
        later.append(answering(metadata(len(later)))(heard))
        return b""

    def all_at_once(heard: Heard) -> bytes:
        return b"".join([*later, answering(metadata(2))(heard)])

    answers: list[int] = []
    with FakeBroker([keep, keep, all_at_once]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        deadline = time.monotonic() + 50
        for _ in range(3):
            connection.send(
                question(connection),
                then=lambda answer: answers.append(answer.controller_id),
                deadline=deadline,
            )
        assert connection.in_flight == 3
        while connection.in_flight:
            connection.wait()
        connection.close()
    assert answers == [0, 1, 2]


def test_a_loop_drives_it_by_a_selector_alone() -> None:
    batch = bytes(30 << 20)  # more than the kernel takes at once

    def acknowledge(heard: Heard) -> bytes:
        assert len(heard.body) > len(batch)
        return frame(
            heard.correlation_id.to_bytes(4, "big")
            + b"\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01"
            + bytes(6)
            + (77).to_bytes(8, "big")
            + bytes(16)
            + bytes(4)
        )

    answers: list[Any] = []
    with FakeBroker([acknowledge]) as broker, selectors.DefaultSelector() as selector:
        connection = Connection.open(CLIENT, broker.address)
        request = produce_request(7, [OutgoingBatch("t", 0, [batch])], timeout_ms=100)
        connection.send(request, then=answers.append, deadline=time.monotonic() + 10)
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
    assert answers[0].acknowledgements["t", 0].base_offset == 77


def test_an_overdue_answer_ends_the_connection() -> None:
    lost: list[ClusterError] = []
    with FakeBroker([silence]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        now = time.monotonic()
        assert not connection.expired(now + 1e9)
        connection.send(question(connection), then=never, lost=lost.append, deadline=now + 5)
        assert not connection.expired(now + 4.9)
        connection.expire(now + 4.9)
        assert connection.expired(now + 5)
        with pytest.raises(ClusterTimeout, match="no answer to Metadata in time"):
            connection.expire(now + 5)
        assert connection.is_closed
    assert [type(error) for error in lost] == [ClusterTimeout]


def test_throttling_mutes_the_connection_and_moves_deadlines() -> None:
    with FakeBroker([answering(metadata(1, throttle_time_ms=60_000)), silence]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        now = time.monotonic()
        answered: list[object] = []
        connection.send(question(connection), then=answered.append, deadline=now + 30)
        connection.send(question(connection), then=never, deadline=now + 30)
        while not answered:
            connection.wait()
        assert now + 59 < connection.muted_until < time.monotonic() + 61
        assert not connection.expired(now + 85)
        assert connection.expired(time.monotonic() + 91)
        connection.send(question(connection), then=never, deadline=now + 1)
        assert not connection.expired(now + 59)
        connection.close()


def test_closing_settles_what_is_in_flight() -> None:
    lost: list[ClusterError] = []
    with FakeBroker([silence]) as broker:
        connection = Connection.open(CLIENT, broker.address)
        connection.send(
            question(connection),
            then=never,
            lost=lost.append,
            deadline=time.monotonic() + 50,
        )
        connection.close()
        connection.close()
    assert [type(error) for error in lost] == [ClusterUnavailable]


def test_frames_come_from_the_pool_and_go_back() -> None:
    big = metadata()
    big.cluster_id = "c" * SMALL_BYTES
    pool = Pool(Budget(1 << 30))
    with FakeBroker([answering(big), answering(big)]) as broker:
        connection = Connection.open(CLIENT, broker.address, pool=pool)
        assert pool.budget.used == 0
        ask(connection)
        kept = pool.kept_bytes
        assert kept > SMALL_BYTES
        ask(connection)
        assert (pool.kept_bytes, pool.budget.used) == (kept, 0)
        connection.close()


# -- SASL -----------------------------------------------------------------------------------------


def shaking(code: int = 0, *mechanisms: str) -> Reply:
    return answering(SaslHandshakeResponse(error_code=code, mechanisms=list(mechanisms)))


def letting_in(life_ms: int = 0, code: int = 0, message: str | None = None) -> Reply:
    return answering(
        SaslAuthenticateResponse(
            error_code=code, error_message=message, auth_bytes=b"", session_lifetime_ms=life_ms
        )
    )


def test_a_login_is_a_handshake_and_what_the_mechanism_says() -> None:
    with FakeBroker([shaking(), letting_in(), answering(metadata())]) as broker:
        connection = Connection.open(SASL, broker.address)
        assert ask(connection) == 1
        connection.close()
    assert broker.api_keys() == [18, 17, 36, 3]
    assert b"PLAIN" in broker.heard[1].body
    assert b"ann\x00ann\x00pw" in broker.heard[2].body


@pytest.mark.parametrize(
    ("replies", "text"),
    [
        ([shaking(33, "SCRAM-SHA-512", "GSSAPI")], "it offers SCRAM-SHA-512, GSSAPI"),
        ([shaking(34)], "handshake failed: ILLEGAL_SASL_STATE"),
        ([shaking(), letting_in(code=58, message="Authentication failed: bad")], "failed: bad"),
        ([shaking(), letting_in(code=58)], r"SASL_AUTHENTICATION_FAILED \(58\)"),
    ],
    ids=["mechanism", "state", "password", "no-words"],
)
def test_a_refused_login_says_why_at_once(replies: list[Reply], text: str) -> None:
    with FakeBroker(replies) as broker:
        with pytest.raises(NotAuthorized, match=text) as caught:
            Connection.open(SASL, broker.address)
        assert "SASL_PLAINTEXT" in str(caught.value)
        assert "pw" not in str(caught.value).split()


@pytest.mark.parametrize(
    ("mechanism", "text"),
    [("NOVEL", "NOVEL is not known here"), ("OAUTHBEARER", "OAUTHBEARER login failed here")],
)
def test_a_login_that_cannot_be_made_here_says_why(mechanism: str, text: str) -> None:
    security = dict(SASL.security) | {"sasl_mechanism": mechanism}
    with FakeBroker([shaking()]) as broker, pytest.raises(NotAuthorized, match=text):
        Connection.open(Client(cluster="primary", security=security), broker.address)


def test_a_session_is_renewed_behind_what_is_in_flight_and_before_what_comes() -> None:
    release = threading.Event()

    def slowly(heard: Heard) -> bytes:
        release.wait(50)
        return answering(metadata(1))(heard)

    replies = [
        *(shaking(), letting_in(life_ms=3000), slowly),
        *(shaking(), letting_in(life_ms=3_600_000)),
        *(answering(metadata(2)), answering(metadata(3))),
    ]
    answers: list[int] = []
    with FakeBroker(replies) as broker:
        connection = Connection.open(SASL, broker.address)
        deadline = time.monotonic() + 50
        for number in range(3):
            if number == 1:
                time.sleep(3.0)
                release.set()
            connection.send(
                question(connection),
                then=lambda answer: answers.append(answer.controller_id),
                deadline=deadline,
            )
        assert connection.in_flight == 4
        while connection.in_flight:
            connection.wait()
        connection.close()
    assert broker.api_keys() == [18, 17, 36, 3, 17, 36, 3, 3]
    assert answers == [1, 2, 3]


def test_a_session_that_cannot_be_renewed_ends_the_connection() -> None:
    lost: list[ClusterError] = []
    refused = letting_in(code=58, message="expired")
    with FakeBroker([shaking(), letting_in(life_ms=10), shaking(), refused]) as broker:
        connection = Connection.open(SASL, broker.address)
        time.sleep(0.02)
        connection.send(
            question(connection),
            then=never,
            lost=lost.append,
            deadline=time.monotonic() + 50,
        )
        with pytest.raises(NotAuthorized, match="expired"):
            while True:
                connection.wait()
    assert [type(error) for error in lost] == [NotAuthorized]
    assert connection.is_closed
