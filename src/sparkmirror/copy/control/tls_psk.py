"""TLS 1.3 with a pre-shared key on a control connection: no certificates. No I/O.

The key is made of the secret of the run. Both ends accept TLS 1.3 and nothing older. OpenSSL
combines the key with an ephemeral Diffie-Hellman exchange (psk_dhe_ke of RFC 8446), so a recorded
connection stays unreadable if the secret becomes known later.

A TLS 1.3 server may ignore the key that a client offers and show a certificate instead. Here a task
trusts no certificate authority, so such a handshake fails, and `session_reused` must confirm that
the key was used. The driver has no certificate, so a client without the key fails too.

OpenSSL reads and writes memory, and the owner of the socket moves the bytes. So there are no
pending bytes that a selector does not see: `unwrap` returns everything that OpenSSL can decrypt.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable, Iterator
from typing import Protocol, Self, cast

from sparkmirror.copy.control.encryption import ControlAuthenticationError
from sparkmirror.copy.control.frames import FrameBuffer, to_frame

HAS_TLS_PSK = bool(getattr(ssl, "HAS_PSK", False)) and ssl.HAS_TLSv1_3
"""Whether the Python of this process has it: 3.13, with an OpenSSL that was built with it."""

IDENTITY = "sparkmirror control channel 3"
"""What the task tells the driver in the clear. The version is part of it and of the key."""
_KEY_PURPOSE = b"sparkmirror control channel 3/TLS pre-shared key"
MAX_HANDSHAKE_BYTES = 16 << 10
"""How much one end reads of a peer that has not authenticated. Each end sends less than 2 KB."""
_RECORD_HEADER_BYTES = 5
_READ_BYTES = 1 << 18


class _PskContext(Protocol):
    """What `ssl.SSLContext` has from Python 3.13 on."""

    def set_psk_client_callback(self, callback: Callable[[str | None], tuple[str, bytes]]) -> None:
        """Set the identity and the key of the client."""
        ...

    def set_psk_server_callback(self, callback: Callable[[str | None], bytes]) -> None:
        """Set the key that the server expects for an identity; no bytes refuse the identity."""
        ...


class TlsPskHandshake:
    """One end of the handshake."""

    def __init__(self, context: ssl.SSLContext, *, is_driver: bool) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=is_driver)
        self._is_done = False
        self._record = b""
        """The received part of an incomplete record."""
        self._received_bytes = 0

    @classmethod
    def of_task(cls, secret: bytes) -> Self:
        """Return the end of a task: the client of TLS."""
        context = _context(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        key = pre_shared_key(secret)
        cast(_PskContext, context).set_psk_client_callback(lambda _hint: (IDENTITY, key))
        return cls(context, is_driver=False)

    @classmethod
    def of_driver(cls, secret: bytes) -> Self:
        """Return the end of the driver: the server of TLS."""
        context = _context(ssl.PROTOCOL_TLS_SERVER)
        context.num_tickets = 0
        key = pre_shared_key(secret)
        cast(_PskContext, context).set_psk_server_callback(
            lambda identity: key if identity == IDENTITY else b""
        )
        return cls(context, is_driver=True)

    @property
    def bytes_wanted(self) -> int:
        """The rest of a record: TLS says the length of each in its header."""
        if self._is_done:
            return 0
        if len(self._record) < _RECORD_HEADER_BYTES:
            return _RECORD_HEADER_BYTES - len(self._record)
        return _record_bytes(self._record) - len(self._record)

    def begin(self) -> bytes:
        """Return the first message of the task; the driver has none."""
        return self._advance()

    def receive(self, received: bytes) -> bytes:
        """Take received bytes. Returns the bytes to send. Raises ControlAuthenticationError."""
        self._record += received
        self._received_bytes += len(received)
        if len(self._record) < _RECORD_HEADER_BYTES:
            return b""
        size = _record_bytes(self._record)
        if self._received_bytes - len(self._record) + size > MAX_HANDSHAKE_BYTES:
            raise ControlAuthenticationError(
                f"the handshake of a control connection is larger than {MAX_HANDSHAKE_BYTES} bytes"
            )
        if len(self._record) < size:
            return b""
        self._incoming.write(self._record)
        self._record = b""
        return self._advance()

    def cipher(self) -> TlsCipher:
        """Return the cipher of this end when the handshake is done."""
        assert self._is_done
        return TlsCipher(self._tls, self._incoming, self._outgoing)

    def _advance(self) -> bytes:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return self._outgoing.read()
        except ssl.SSLError as error:
            raise ControlAuthenticationError(
                "the other end of a new control connection does not know the secret of this run,"
                f" or is another version of sparkmirror ({error.reason})"
            ) from None
        if not self._tls.session_reused or self._tls.version() != "TLSv1.3":
            raise ControlAuthenticationError(
                "the other end of a new control connection did not use the pre-shared key"
            )
        self._is_done = True
        return self._outgoing.read()


class TlsCipher:
    """One end of an established TLS connection."""

    def __init__(
        self, tls: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
    ) -> None:
        self._tls = tls
        self._incoming = incoming
        self._outgoing = outgoing
        self._frames = FrameBuffer()

    def wrap(self, message: bytes) -> bytes:
        """Return the records of a message."""
        rest = memoryview(to_frame(message))
        while rest:
            rest = rest[self._tls.write(rest) :]
        return self._outgoing.read()

    def unwrap(self, received: bytes) -> Iterator[bytes]:
        """Yield the messages that are complete with these bytes.

        Raises ControlAuthenticationError or OversizedFrame, after the messages before the cause.
        """
        self._incoming.write(received)
        while True:
            try:
                plain = self._tls.read(_READ_BYTES)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLError as error:
                raise ControlAuthenticationError(
                    "a record on the control connection was changed, repeated or forged"
                    f" ({error.reason})"
                ) from None
            if not plain:  # close_notify: the other end closes the connection next
                return
            yield from self._frames.append(plain)


def pre_shared_key(secret: bytes) -> bytes:
    """Return the key for TLS: one block of HKDF-Expand (RFC 5869) over the secret of the run."""
    return hmac.digest(secret, _KEY_PURPOSE + b"\x01", "sha256")


def _context(protocol: int) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    return context


def _record_bytes(header: bytes) -> int:
    """Return the size of a record with its header."""
    return _RECORD_HEADER_BYTES + int.from_bytes(header[3:5], "big")
