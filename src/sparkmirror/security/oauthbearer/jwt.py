"""JSON Web Tokens: their parts, their claims, and tokens without a signature."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any


def encode_part(content: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode("ascii")


def encode_json(value: Mapping[str, Any]) -> str:
    """Return a header or claims as one part of a token."""
    return encode_part(json.dumps(value, separators=(",", ":")).encode("utf-8"))


def unsigned_token(claims: Mapping[str, Any]) -> str:
    """Return a token with the algorithm none and an empty signature."""
    return f"{encode_json({'alg': 'none'})}.{encode_json(claims)}."


def read_claims(token: str) -> Mapping[str, Any]:
    """Return the claims, without a check of the signature; none of an opaque token."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        claims = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def read_expiry(token: str) -> float | None:
    """Return the `exp` of a token in seconds since the epoch; None without one."""
    expiry = read_claims(token).get("exp")
    if isinstance(expiry, bool) or not isinstance(expiry, int | float):
        return None
    try:
        return float(expiry)
    except OverflowError:
        return None
