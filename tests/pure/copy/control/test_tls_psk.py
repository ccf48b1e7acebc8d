"""TLS with a pre-shared key on a control connection, and what an attacker can do to it: end it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest

from sparkmirror.copy.control import tls_psk
from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.encryption import ControlAuthenticationError, new_challenge
from sparkmirror.copy.control.frames import MAX_MESSAGE_BYTES, to_frame
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.message_json import encode
from sparkmirror.copy.control.messages import ControlMessage, ProgressReport, SetRateLimit
from sparkmirror.copy.control.tls_psk import (
    HAS_TLS_PSK,
    IDENTITY,
    MAX_HANDSHAKE_BYTES,
    TlsPskHandshake,
    pre_shared_key,
)
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from tests.support.copy.tls_psk_ends import connect_ends, feed

pytestmark = pytest.mark.skipif(
    not HAS_TLS_PSK, reason="this Python has no TLS with pre-shared keys; Python 3.13 has it"
)

SECRET = b"the secret of one run"
COMMANDS: list[ControlMessage] = [SetRateLimit(bytes_per_s=number) for number in range(4)]


class Wire:
    """A task's end of a connection whose other end is in the hands of an attacker."""

    def __init__(self) -> None:
        self.received: list[ControlMessage] = []
        ours, self.attacker = socket.socketpair()
        task, self.driver = connect_ends(SECRET)
        self.task = ControlConnection(ours, self.received.append, task)

    def records(self) -> list[bytes]:
        """Return what the driver sends: the attacker has recorded it."""
        return [self.driver.wrap(encode(command)) for command in COMMANDS]

    def deliver(self, *records: bytes) -> None:
        self.attacker.sendall(b"".join(records))
        self.task.on_readable()

    def close(self) -> None:
        self.task.close()
        self.attacker.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    with closing(Wire()) as wire:
        yield wire


def assert_rejected(wire: Wire, *records: bytes, obeyed: int = 0) -> None:
    """The records end the connection after the first `obeyed` commands."""
    with pytest.raises(ControlConnectionLost):
        wire.deliver(*records)
    assert wire.task.is_closed
    assert wire.received == COMMANDS[:obeyed]


# -- messages ------------------------------------------------------------------------------------


def test_records_in_their_order_are_obeyed_and_none_stays_behind(wire: Wire) -> None:
    wire.deliver(*wire.records())
    assert wire.received == COMMANDS


def test_messages_arrive_whole_from_any_pieces() -> None:
    task, driver = connect_ends(SECRET)
    messages = [b"first", bytes(100_000), b"", b"last"]
    stream = b"".join(task.wrap(message) for message in messages)
    received = [
        message
        for at in range(0, len(stream), 997)
        for message in driver.unwrap(stream[at : at + 997])
    ]
    assert received == messages
    assert list(driver.unwrap(b"")) == []


def test_a_large_report_is_sent_while_the_socket_takes_little_at_a_time() -> None:
    ours, theirs = socket.socketpair()
    received: list[ControlMessage] = []
    task, driver = connect_ends(SECRET)
    report = ProgressReport(progress={}, runs=[("t-0", n, n, 1) for n in range(50_000)])
    with (
        closing(ControlConnection(ours, lambda _: None, task)) as sending,
        closing(ControlConnection(theirs, received.append, driver)) as receiving,
    ):
        sending.send(report)
        assert sending.wants_write, "the report is larger than the send buffer"
        while not received:
            receiving.on_readable()
            sending.on_writable()
    assert received == [report]


def test_the_first_message_may_arrive_together_with_the_end_of_the_handshake() -> None:
    task, driver = TlsPskHandshake.of_task(SECRET), TlsPskHandshake.of_driver(SECRET)
    from_driver, _ = feed(driver, task.begin())
    finished, _ = feed(task, from_driver)
    answers, rest = feed(driver, finished + task.cipher().wrap(b"hello"))
    assert answers == b""
    assert list(driver.cipher().unwrap(rest)) == [b"hello"]


# -- an attacker on the network ------------------------------------------------------------------


def test_a_repeated_record_ends_the_connection(wire: Wire) -> None:
    first = wire.records()[0]
    assert_rejected(wire, first, first, obeyed=1)


def test_a_record_that_was_left_out_ends_the_connection(wire: Wire) -> None:
    records = wire.records()
    assert_rejected(wire, records[0], records[2], obeyed=1)


def test_exchanged_records_end_the_connection(wire: Wire) -> None:
    records = wire.records()
    assert_rejected(wire, records[1], records[0])


def test_a_changed_record_ends_the_connection_after_the_messages_before_it(wire: Wire) -> None:
    records = wire.records()
    changed = records[1][:-1] + bytes([records[1][-1] ^ 1])
    assert_rejected(wire, records[0], changed, obeyed=1)


def test_records_that_return_to_their_sender_end_the_connection(wire: Wire) -> None:
    wire.task.send(COMMANDS[0])
    assert_rejected(wire, wire.attacker.recv(1 << 16))


def test_a_record_of_another_connection_ends_the_connection(wire: Wire) -> None:
    with closing(Wire()) as other:
        assert_rejected(wire, other.records()[0])


def test_half_a_record_before_the_end_of_the_connection_is_not_obeyed(wire: Wire) -> None:
    records = wire.records()
    wire.deliver(records[0], records[1][:-1])
    wire.attacker.shutdown(socket.SHUT_WR)
    with pytest.raises(ControlConnectionLost, match="closed by the other end"):
        wire.task.on_readable()
    assert wire.received == COMMANDS[:1]


def test_a_plain_frame_ends_the_connection(wire: Wire) -> None:
    assert_rejected(wire, to_frame(b'{"type":"drain"}'))


def test_a_length_above_the_limit_ends_the_connection(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    oversized = (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big")
    monkeypatch.setattr(tls_psk, "to_frame", lambda _message: oversized)
    with pytest.raises(ControlConnectionLost, match="larger than"):
        wire.deliver(wire.driver.wrap(b""))
    assert wire.task.is_closed


# -- handshakes ----------------------------------------------------------------------------------


def test_the_secret_itself_is_not_the_key() -> None:
    assert pre_shared_key(SECRET) != SECRET
    assert pre_shared_key(SECRET) != pre_shared_key(SECRET + b"!")
    assert len(pre_shared_key(SECRET)) == 32


def test_ends_with_different_secrets_do_not_connect() -> None:
    with pytest.raises(ControlAuthenticationError, match="does not know the secret"):
        connect_ends(SECRET, b"the secret of another run")


def test_a_recorded_handshake_of_a_task_is_worth_nothing() -> None:
    task, driver = TlsPskHandshake.of_task(SECRET), TlsPskHandshake.of_driver(SECRET)
    hello = task.begin()
    from_driver, _ = feed(driver, hello)
    finished, _ = feed(task, from_driver)
    replayed = TlsPskHandshake.of_driver(SECRET)
    with pytest.raises(ControlAuthenticationError):
        feed(replayed, hello + finished)
    assert replayed.bytes_wanted


def test_the_driver_reads_a_limited_number_of_bytes_before_it_knows_the_client() -> None:
    driver = TlsPskHandshake.of_driver(SECRET)
    with pytest.raises(ControlAuthenticationError, match=f"larger than {MAX_HANDSHAKE_BYTES}"):
        driver.receive(b"\x16\x03\x01\xff\xff")
    driver = TlsPskHandshake.of_driver(SECRET)
    with pytest.raises(ControlAuthenticationError):
        feed(driver, b"\x16\x03\x01\x00\x00" * MAX_HANDSHAKE_BYTES)


def client_context(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = context.maximum_version = version
    return context


def assert_driver_refuses(context: ssl.SSLContext) -> None:
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    with pytest.raises(ControlAuthenticationError):
        feed(TlsPskHandshake.of_driver(SECRET), outgoing.read())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_without_the_key_is_refused(version: ssl.TLSVersion) -> None:
    assert_driver_refuses(client_context(version))


def with_key(context: ssl.SSLContext, identity: str = IDENTITY) -> ssl.SSLContext:
    key = pre_shared_key(SECRET)
    cast(Any, context).set_psk_client_callback(lambda _hint: (identity, key))
    return context


def test_a_client_with_the_key_is_refused_below_tls_1_3() -> None:
    context = with_key(client_context(ssl.TLSVersion.TLSv1_2))
    context.set_ciphers("PSK")
    assert_driver_refuses(context)


def test_a_client_with_another_identity_is_refused() -> None:
    assert_driver_refuses(
        with_key(client_context(ssl.TLSVersion.TLSv1_3), "sparkmirror control channel 2")
    )


@pytest.fixture
def certificate(tmp_path: Path) -> ssl.SSLContext:
    """A server with a certificate instead of the key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CertificateAuthority.create(tmp_path / "ca").issue("driver"))
    return context


def shake_hands_with_certificate(server: ssl.SSLContext) -> TlsPskHandshake:
    """Return the end of a task after a server has ignored its key and shown a certificate."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = server.wrap_bio(incoming, outgoing, server_side=True)
    task = TlsPskHandshake.of_task(SECRET)
    incoming.write(task.begin())
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    feed(task, outgoing.read())
    return task


def test_a_server_that_shows_a_certificate_instead_of_the_key_is_refused(
    certificate: ssl.SSLContext,
) -> None:
    with pytest.raises(ControlAuthenticationError, match="CERTIFICATE_VERIFY_FAILED"):
        shake_hands_with_certificate(certificate)


def test_a_certificate_that_the_task_would_trust_does_not_replace_the_key(
    certificate: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusting(_protocol: int) -> ssl.SSLContext:
        return client_context(ssl.TLSVersion.TLSv1_3)

    monkeypatch.setattr(tls_psk, "_context", trusting)
    with pytest.raises(ControlAuthenticationError, match="did not use the pre-shared key"):
        shake_hands_with_certificate(certificate)


# -- a task that connects to another server than its driver --------------------------------------


@contextmanager
def server_of(serve: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            sock, _ = listener.accept()
            with sock, suppress(OSError):  # the task hangs up
                serve(sock)

        thread = threading.Thread(target=accept)
        thread.start()
        yield listener.getsockname()
        thread.join()


def connect_to(address: tuple[str, int]) -> None:
    ControlConnection.connect(address, ControlProtocol.TLS_PSK, SECRET, lambda _: None).close()


def test_a_server_of_encrypted_frames_cannot_make_a_task_of_tls_speak_them() -> None:
    seen: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        seen.append(sock.recv(MAX_HANDSHAKE_BYTES))
        sock.sendall(new_challenge())

    with (
        server_of(serve) as address,
        pytest.raises(ControlConnectionLost, match="ends the handshake"),
    ):
        connect_to(address)
    assert seen[0][:1] == b"\x16", "a handshake record of TLS"


def test_a_server_that_closes_during_the_handshake_is_a_lost_connection() -> None:
    with (
        server_of(lambda _sock: None) as address,
        pytest.raises(ControlConnectionLost, match="ends the handshake"),
    ):
        connect_to(address)
