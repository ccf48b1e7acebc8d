"""Messages of a control connection in a stream of bytes: each behind its length. No I/O."""

from __future__ import annotations

import struct

from sparkmirror.errors import MirrorError

_LENGTH = struct.Struct(">I")
MAX_MESSAGE_BYTES = 64 << 20


class OversizedFrame(MirrorError):
    """A length above MAX_MESSAGE_BYTES: another program, or an attacker."""


def to_frame(payload: bytes) -> bytes:
    """Return the payload behind its length."""
    return _LENGTH.pack(len(payload)) + payload


class FrameBuffer:
    """Received bytes, until their frames are complete."""

    def __init__(self) -> None:
        self._received = bytearray()

    def append(self, received: bytes) -> list[bytes]:
        """Add received bytes. Returns the payloads that are complete. Raises OversizedFrame."""
        self._received += received
        payloads: list[bytes] = []
        at = 0
        while len(self._received) - at >= _LENGTH.size:
            (size,) = _LENGTH.unpack_from(self._received, at)
            if size > MAX_MESSAGE_BYTES:
                raise OversizedFrame(
                    f"a message of {size} bytes is larger than {MAX_MESSAGE_BYTES}"
                )
            if len(self._received) - at < _LENGTH.size + size:
                break
            at += _LENGTH.size
            payloads.append(bytes(self._received[at : at + size]))
            at += size
        del self._received[:at]
        return payloads
