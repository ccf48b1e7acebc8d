"""What an attacker on the network can do with a control connection: end it, and nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress

import pytest

from sparkmirror.copy.control import connection as control_connection
from sparkmirror.copy.control.connection import (
    ControlConnection,
    ControlConnectionLost,
)
from sparkmirror.copy.control.encryption import (
    ANSWER_BYTES,
    NONCE_BYTES,
    CipherPair,
    new_challenge,
    verify_answer,
)
from sparkmirror.copy.control.frames import MAX_MESSAGE_BYTES
from sparkmirror.copy.control.handshake import ControlProtocol
from sparkmirror.copy.control.message_json import encode
from sparkmirror.copy.control.messages import (
    AbortTask,
    ControlMessage,
    Drain,
    SetRateLimit,
    Welcome,
)
from tests.support.copy.control_client import handshake_keys

FRAMES = ControlProtocol.ENCRYPTED_FRAMES
SECRET = b"the secret of one run"
COMMANDS: list[ControlMessage] = [SetRateLimit(bytes_per_s=number) for number in range(4)]


class Wire:
    """A task's end of a connection whose other end is in the hands of an attacker."""

    def __init__(self) -> None:
        self.received: list[ControlMessage] = []
        ours, self.attacker = socket.socketpair()
        keys = handshake_keys(SECRET)
        self.task = ControlConnection(ours, self.received.append, keys.task_ciphers())
        self.frames = encrypt_frames(keys.driver_ciphers())
        """The frames that the driver has sent: the attacker has recorded them."""

    def deliver(self, *frames: bytes) -> None:
        self.attacker.sendall(b"".join(frames))
        self.task.on_readable()

    def close(self) -> None:
        self.task.close()
        self.attacker.close()


def encrypt_frames(ciphers: CipherPair) -> list[bytes]:
    payloads = [ciphers.outgoing.encrypt(encode(command)) for command in COMMANDS]
    return [len(payload).to_bytes(4, "big") + payload for payload in payloads]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with closing(Wire()) as wire:
        yield wire


def assert_rejected(wire: Wire, *frames: bytes, obeyed: int = 0) -> None:
    """The frames end the connection after the first `obeyed` commands."""
    with pytest.raises(ControlConnectionLost):
        wire.deliver(*frames)
    assert wire.task.is_closed
    assert wire.received == COMMANDS[:obeyed]


def test_frames_in_their_order_are_obeyed(wire: Wire) -> None:
    wire.deliver(*wire.frames)
    assert wire.received == COMMANDS


def test_a_repeated_frame_ends_the_connection(wire: Wire) -> None:
    assert_rejected(wire, wire.frames[0], wire.frames[0], obeyed=1)


def test_a_frame_that_was_left_out_ends_the_connection(wire: Wire) -> None:
    assert_rejected(wire, wire.frames[0], wire.frames[2], obeyed=1)


def test_exchanged_frames_end_the_connection(wire: Wire) -> None:
    assert_rejected(wire, wire.frames[1], wire.frames[0])


def test_a_shortened_frame_ends_the_connection(wire: Wire) -> None:
    cut = wire.frames[0][4:-1]
    assert_rejected(wire, len(cut).to_bytes(4, "big") + cut)


def test_a_frame_shorter_than_a_tag_ends_the_connection(wire: Wire) -> None:
    assert_rejected(wire, bytes(4))


def test_half_a_frame_before_the_end_of_the_connection_is_not_obeyed(wire: Wire) -> None:
    wire.deliver(wire.frames[0], wire.frames[1][:-1])
    wire.attacker.shutdown(socket.SHUT_WR)
    with pytest.raises(ControlConnectionLost, match="closed by the other end"):
        wire.task.on_readable()
    assert wire.received == COMMANDS[:1]


def test_two_frames_that_are_joined_to_one_end_the_connection(wire: Wire) -> None:
    joined = wire.frames[0][4:] + wire.frames[1][4:]
    assert_rejected(wire, len(joined).to_bytes(4, "big") + joined)


def test_frames_that_return_to_their_sender_end_the_connection(wire: Wire) -> None:
    for command in COMMANDS:
        wire.task.send(command)
    assert_rejected(wire, wire.attacker.recv(1 << 16))


@pytest.mark.parametrize(
    ("secret", "nonce"), [(SECRET, b"m"), (b"of another run", b"n")], ids=["nonces", "secret"]
)
def test_a_frame_of_another_connection_ends_the_connection(
    wire: Wire, secret: bytes, nonce: bytes
) -> None:
    others = encrypt_frames(handshake_keys(secret, nonce).driver_ciphers())
    assert_rejected(wire, others[0])


def test_a_plain_frame_ends_the_connection(wire: Wire) -> None:
    plain = encode(Drain())
    assert_rejected(wire, len(plain).to_bytes(4, "big") + plain)


def test_a_length_above_the_limit_ends_the_connection_before_its_bytes_arrive(wire: Wire) -> None:
    with pytest.raises(ControlConnectionLost, match="larger than"):
        wire.deliver((MAX_MESSAGE_BYTES + 1).to_bytes(4, "big"))
    assert wire.task.is_closed


# -- a task that connects to an attacker instead of the driver -----------------------------------


@contextmanager
def server_of(attack: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Listen where a task expects its driver, and let the attack serve its connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            sock, _ = listener.accept()
            with sock, suppress(ConnectionError):  # the task hangs up
                attack(sock)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        thread.join()


def assert_refused(attack: Callable[[socket.socket], None], reason: str) -> None:
    received: list[ControlMessage] = []
    with server_of(attack) as address, pytest.raises(ControlConnectionLost, match=reason):
        ControlConnection.connect(address, FRAMES, SECRET, received.append)
    assert received == []


def read_to_the_end(sock: socket.socket) -> bytes:
    with sock.makefile("rb") as file:
        return file.read()


def test_a_server_without_the_secret_gets_the_answer_of_the_task_and_no_message() -> None:
    seen: list[bytes] = []

    def attack(sock: socket.socket) -> None:
        sock.sendall(new_challenge() + bytes(NONCE_BYTES))
        seen.append(read_to_the_end(sock))

    assert_refused(attack, "does not know the secret")
    assert len(seen[0]) == ANSWER_BYTES


def test_a_server_that_sends_the_proof_of_the_task_back_is_refused() -> None:
    def attack(sock: socket.socket) -> None:
        sock.sendall(new_challenge())
        answer = sock.recv(ANSWER_BYTES, socket.MSG_WAITALL)
        sock.sendall(answer[NONCE_BYTES:])
        read_to_the_end(sock)

    assert_refused(attack, "does not know the secret")


def test_a_server_that_replays_a_recorded_driver_is_refused() -> None:
    recorded: list[bytes] = []

    def driver(sock: socket.socket) -> None:
        challenge = new_challenge()
        sock.sendall(challenge)
        answer = sock.recv(ANSWER_BYTES, socket.MSG_WAITALL)
        keys = verify_answer(SECRET, challenge, answer)
        frame = keys.driver_ciphers().outgoing.encrypt(encode(AbortTask(reason="recorded")))
        recorded.append(challenge + keys.driver_proof + len(frame).to_bytes(4, "big") + frame)
        sock.sendall(keys.driver_proof)

    def replay(sock: socket.socket) -> None:
        sock.sendall(recorded[0])
        read_to_the_end(sock)

    with server_of(driver) as address:
        ControlConnection.connect(address, FRAMES, SECRET, lambda _: None).close()
    assert_refused(replay, "does not know the secret")


def test_a_server_that_offers_no_encryption_is_refused() -> None:
    def attack(sock: socket.socket) -> None:
        plain = encode(Welcome(settings={}))
        sock.sendall(len(plain).to_bytes(4, "big") + plain + bytes(1 << 16))
        read_to_the_end(sock)

    assert_refused(attack, "does not know the secret|reset")


def test_a_server_that_sends_single_bytes_does_not_hold_a_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(control_connection, "CONNECT_TIMEOUT_S", 0.5)
    ended = threading.Event()

    def attack(sock: socket.socket) -> None:
        for _ in range(NONCE_BYTES - 1):
            sock.sendall(b"!")
            if ended.wait(0.2):
                return

    with server_of(attack) as address:
        with pytest.raises(ControlConnectionLost, match="timed out"):
            ControlConnection.connect(address, FRAMES, SECRET, lambda _: None)
        ended.set()
