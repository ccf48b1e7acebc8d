"""How both ends of a control connection authenticate each other, and how it is encrypted then.

    ENCRYPTED_FRAMES   `encryption`: the standard library of every Python
    TLS_PSK            `tls_psk`: TLS 1.3 with a pre-shared key, from Python 3.13 on

The driver decides for one of them, and its endpoint names it. Both ends use that one and no
other. So nothing is negotiated on the network, and an attacker there has nothing to negotiate down.
No I/O.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

from sparkmirror.copy.control.encryption import DriverFramesHandshake, TaskFramesHandshake
from sparkmirror.copy.control.tls_psk import HAS_TLS_PSK, TlsPskHandshake
from sparkmirror.errors import MirrorError


class ControlProtocol(enum.StrEnum):
    """The protocol of a control server. The value is written into endpoint files and settings."""

    ENCRYPTED_FRAMES = "encrypted-frames"
    TLS_PSK = "tls-psk"


class ControlProtocolUnsupported(MirrorError):
    """The driver uses a protocol that the Python of this process does not have."""


class ConnectionCipher(Protocol):
    """Encrypts the messages that one end sends and decrypts those that it receives."""

    def wrap(self, message: bytes) -> bytes:
        """Return the bytes to send for a message."""
        ...

    def unwrap(self, received: bytes) -> Iterator[bytes]:
        """Yield the messages that are complete with these bytes.

        Raises ControlAuthenticationError or OversizedFrame, after the messages before the cause.
        """
        ...


class ControlHandshake(Protocol):
    """One end of a handshake."""

    @property
    def bytes_wanted(self) -> int:
        """How many bytes to receive at most before the next call; 0 when the handshake is done.

        A byte behind the handshake belongs to the first message, so it is not received early.
        """
        ...

    def begin(self) -> bytes:
        """Return the bytes to send first; there may be none."""
        ...

    def receive(self, received: bytes) -> bytes:
        """Take received bytes. Returns the bytes to send. Raises ControlAuthenticationError."""
        ...

    def cipher(self) -> ConnectionCipher:
        """Return the cipher of this end when the handshake is done."""
        ...


def preferred_protocol(*, has_tls_psk: bool = HAS_TLS_PSK) -> ControlProtocol:
    """Return the protocol for a driver and tasks that run the same Python."""
    return ControlProtocol.TLS_PSK if has_tls_psk else ControlProtocol.ENCRYPTED_FRAMES


def task_handshake(protocol: ControlProtocol, secret: bytes) -> ControlHandshake:
    """Return the end of the task, or of the planner. Raises ControlProtocolUnsupported."""
    if protocol is ControlProtocol.TLS_PSK:
        _require_tls_psk()
        return TlsPskHandshake.of_task(secret)
    return TaskFramesHandshake(secret)


def driver_handshake(protocol: ControlProtocol, secret: bytes) -> ControlHandshake:
    """Return the end of the driver. Raises ControlProtocolUnsupported."""
    if protocol is ControlProtocol.TLS_PSK:
        _require_tls_psk()
        return TlsPskHandshake.of_driver(secret)
    return DriverFramesHandshake(secret)


def _require_tls_psk() -> None:
    if not HAS_TLS_PSK:
        raise ControlProtocolUnsupported(
            "the driver uses TLS with a pre-shared key, and this Python has none;"
            f" set spark.sparkmirror.control.protocol={ControlProtocol.ENCRYPTED_FRAMES}"
        )
