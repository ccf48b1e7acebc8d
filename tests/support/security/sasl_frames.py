"""The requests and responses of a SASL login, byte by byte, as a broker sees them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

FETCH = 1
API_VERSIONS = 18
SASL_HANDSHAKE = 17
SASL_AUTHENTICATE = 36
_FLEXIBLE_AUTHENTICATE = 2
"""From this version on SaslAuthenticate has compact fields."""
_UNSUPPORTED_SASL_MECHANISM = 33
_SASL_AUTHENTICATION_FAILED = 58
_HEAD = struct.Struct(">ihhi")
_BEARER = re.compile(rb"n,[^,]*,\x01auth=Bearer ([A-Za-z0-9._~+/=-]+)\x01")


@dataclass(frozen=True, slots=True)
class RequestFrame:
    """One request: the head, and the bytes behind the client id."""

    api_key: int
    version: int
    correlation_id: int
    body: bytes

    @classmethod
    def parse(cls, frame: bytes) -> RequestFrame:
        """Parse a request with its length."""
        _, api_key, version, correlation_id = _HEAD.unpack_from(frame)
        (client_id_size,) = struct.unpack_from(">h", frame, _HEAD.size)
        body = frame[_HEAD.size + 2 + max(client_id_size, 0) :]
        return cls(api_key, version, correlation_id, body)


def token_of(request: RequestFrame) -> str:
    """Return the token in a SaslAuthenticate request of OAUTHBEARER; empty if there is none."""
    found = _BEARER.search(request.body)
    return found[1].decode() if found else ""


def handshake_response(request: RequestFrame, offered: str) -> bytes:
    """Return the response to SaslHandshake of a broker that offers one mechanism."""
    (size,) = struct.unpack_from(">h", request.body)
    is_offered = request.body[2 : 2 + size].decode() == offered
    code = 0 if is_offered else _UNSUPPORTED_SASL_MECHANISM
    name = offered.encode()
    body = struct.pack(">hih", code, 1, len(name)) + name
    return _framed(request, body)


def authenticate_response(
    request: RequestFrame, *, error: str = "", session_lifetime_ms: int = 0
) -> bytes:
    """Return the response to SaslAuthenticate: an error, or a session."""
    code = struct.pack(">h", _SASL_AUTHENTICATION_FAILED if error else 0)
    text = error.encode()
    lifetime = struct.pack(">q", session_lifetime_ms)
    if request.version >= _FLEXIBLE_AUTHENTICATE:
        message = _varint(len(text) + 1) + text if error else _varint(0)
        tags = b"\x00"
        return _framed(request, tags + code + message + _varint(1) + lifetime + tags)
    message = struct.pack(">h", len(text) if error else -1) + text
    body = code + message + struct.pack(">i", 0)
    return _framed(request, body + lifetime if request.version else body)


def _framed(request: RequestFrame, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), request.correlation_id) + body


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)
