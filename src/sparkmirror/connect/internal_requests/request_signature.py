"""The signature of a request from one worker to another, in Connect's headers. Pure.

    X-Connect-Authorization                  base64(HMAC(session key, signed bytes))
    X-Connect-Request-Signature-Algorithm    the algorithm of the HMAC, by Java's name

Connect signs the body. A request of ours that has no body signs its method and its path instead, so
that its signature is not valid for another request.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from sparkmirror.config.definition.worker_validators import MAC_ALGORITHMS
from sparkmirror.errors import BadRequest, RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import SessionKey

SIGNATURE_HEADER: Final = "X-Connect-Authorization"
ALGORITHM_HEADER: Final = "X-Connect-Request-Signature-Algorithm"
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9+/=]")
_DIGESTS: Final = {
    name.lower(): name.lower().removeprefix("hmac").replace("/", "_") for name in MAC_ALGORITHMS
}
"""Python's name of the hash of each algorithm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalRequestSignature:
    """The signature that came with a request, or that goes with one."""

    algorithm: str
    mac: bytes = field(repr=False)

    @classmethod
    def sign(cls, key: SessionKey, algorithm: str, signed: bytes) -> Self:
        """Sign these bytes. The algorithm is one of MAC_ALGORITHMS in any case."""
        return cls(algorithm=algorithm, mac=_mac(key, algorithm, signed))

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self | None:
        """Read the headers, by name in lower case; None if one of the two is missing.

        Raises BadRequest, with Java's texts, for an unknown algorithm or a text that is not base64.
        """
        encoded = headers.get(SIGNATURE_HEADER.lower())
        algorithm = headers.get(ALGORITHM_HEADER.lower())
        if encoded is None or algorithm is None:
            return None
        if algorithm.lower() not in _DIGESTS:
            raise BadRequest(f"Algorithm {algorithm} not available")
        return cls(algorithm=algorithm, mac=_decode(encoded))

    def headers(self) -> dict[str, str]:
        """Return the headers of a request with this signature."""
        encoded = base64.b64encode(self.mac).decode("ascii")
        return {SIGNATURE_HEADER: encoded, ALGORITHM_HEADER: self.algorithm}

    def is_valid(self, key: SessionKey, signed: bytes) -> bool:
        """Return whether a worker with this key has signed these bytes. Takes constant time."""
        return hmac.compare_digest(self.mac, _mac(key, self.algorithm, signed))


def _mac(key: SessionKey, algorithm: str, signed: bytes) -> bytes:
    try:
        secret = base64.b64decode(key.key)
    except binascii.Error:
        raise RequestFailed("The session key in the config topic is not base64") from None
    return hmac.new(secret, signed, _DIGESTS[algorithm.lower()]).digest()


def _decode(encoded: str) -> bytes:
    illegal = _NOT_BASE64.search(encoded)
    if illegal is not None:
        raise BadRequest(f"Illegal base64 character {ord(illegal[0]):x}")
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error:
        raise BadRequest("Input byte array has wrong 4-byte ending unit") from None
