"""What the ends of a control connection read: handshakes, frames, messages."""

from __future__ import annotations

import socket
from collections.abc import Callable

from sparkmirror.copy.control.connection import ControlConnection, ControlConnectionLost
from sparkmirror.copy.control.encryption import DriverFramesHandshake
from sparkmirror.copy.control.message_json import MalformedMessage, decode, encode
from sparkmirror.copy.control.tls_psk import HAS_TLS_PSK, TlsPskHandshake
from sparkmirror.engine.driver.control.authenticated_connection import Handshake
from tests.fuzz.fuzz_target import FuzzTarget, direct
from tests.support.copy.control_client import handshake_keys
from tests.support.copy.control_messages import CONTROL_MESSAGES

_ENCODED = [encode(message) for message in CONTROL_MESSAGES]

MESSAGES = FuzzTarget(
    name="control messages",
    seeds=_ENCODED,
    tokens=[b"null", b"true", b"[]", b"{}", b"[" * 2000, b'"type":', b"1e400", b"\\ud800"],
    open_parser=direct(decode),
    errors=(MalformedMessage,),
)


def _with_peer(data: bytes, read: Callable[[socket.socket], None]) -> None:
    """Let one end of a socket read what the other end has sent before it closed."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        theirs.send(data)
        theirs.shutdown(socket.SHUT_WR)
        read(ours)


def _frames(data: bytes) -> None:
    def read(sock: socket.socket) -> None:
        connection = ControlConnection(sock, lambda _: None, handshake_keys().driver_ciphers())
        while True:
            connection.on_readable()

    _with_peer(data, read)


def _valid_frames() -> bytes:
    cipher = handshake_keys().task_ciphers().outgoing
    frames = [cipher.encrypt(encoded) for encoded in _ENCODED[:3]]
    return b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)


FRAMES = FuzzTarget(
    name="control frames",
    seeds=[_valid_frames()],
    open_parser=direct(_frames),
    errors=(ControlConnectionLost, MalformedMessage),
)


def _handshake(data: bytes) -> None:
    def read(sock: socket.socket) -> None:
        handshake = Handshake(sock, DriverFramesHandshake(b"secret"), 0.0, lambda *_: None)
        while True:
            handshake.on_readable()

    _with_peer(data, read)


HANDSHAKES = FuzzTarget(
    name="control handshakes",
    seeds=[bytes(64), bytes(200), b'{"type":"hello"}'],
    open_parser=direct(_handshake),
    errors=(ControlConnectionLost,),
)


def _tls_handshake(data: bytes) -> None:
    def read(sock: socket.socket) -> None:
        handshake = Handshake(sock, TlsPskHandshake.of_driver(b"secret"), 0.0, lambda *_: None)
        while True:
            handshake.on_readable()

    _with_peer(data, read)


def tls_handshakes() -> tuple[FuzzTarget, ...]:
    """Return the target for the handshake of TLS; none if this Python does not have it."""
    if not HAS_TLS_PSK:
        return ()
    return (
        FuzzTarget(
            name="control handshakes over TLS",
            seeds=[TlsPskHandshake.of_task(b"secret").begin()],
            open_parser=direct(_tls_handshake),
            errors=(ControlConnectionLost,),
        ),
    )
