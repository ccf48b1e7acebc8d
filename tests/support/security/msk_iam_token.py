"""The check of a token of AWS IAM for MSK: a presigned URL whose signature version 4 must fit.

The check follows AWS's description of the signature, without AWS's library.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, quote, urlsplit

ACTION = "kafka-cluster:Connect"
SERVICE = "kafka-cluster"
ALGORITHM = "AWS4-HMAC-SHA256"
MAX_EXPIRY = timedelta(minutes=15)
CLOCK_SKEW = timedelta(minutes=5)
_TIMESTAMP = "%Y%m%dT%H%M%SZ"
_UNSIGNED = ("X-Amz-Signature", "User-Agent")


class TokenRefused(Exception):
    """The text is the reason."""


def verify_token(token: str, *, region: str, secrets: Mapping[str, str], now: datetime) -> str:
    """Return the access key id of a valid token. Raises TokenRefused.

    `secrets` maps the known access key ids to their secret keys.
    """
    url = urlsplit(_decode(token))
    query = dict(parse_qsl(url.query, keep_blank_values=True))
    if (url.scheme, url.path) != ("https", "/") or query.get("Action") != ACTION:
        raise TokenRefused("the token is no request to connect")
    if url.netloc != f"kafka.{region}.amazonaws.com":
        raise TokenRefused(f"the token is for {url.netloc}, this is region {region}")
    access_key = _check_scope(query, region)
    _check_time(query, now)
    if access_key not in secrets:
        raise TokenRefused(f"the access key {access_key} is unknown")
    expected = _signature(query, url.netloc, secrets[access_key])
    if not hmac.compare_digest(expected, query.get("X-Amz-Signature", "")):
        raise TokenRefused("the signature does not match")
    return access_key


def _decode(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise TokenRefused("the token is no base64 text") from None


def _check_scope(query: Mapping[str, str], region: str) -> str:
    """Check algorithm and scope of the signature; return the access key id."""
    if query.get("X-Amz-Algorithm") != ALGORITHM or query.get("X-Amz-SignedHeaders") != "host":
        raise TokenRefused("the token has another signature than version 4 of the host")
    access_key, _, scope = query.get("X-Amz-Credential", "").partition("/")
    day = query.get("X-Amz-Date", "")[:8]
    if scope != f"{day}/{region}/{SERVICE}/aws4_request":
        raise TokenRefused(f"the scope {scope} is not that of region {region}")
    return access_key


def _check_time(query: Mapping[str, str], now: datetime) -> None:
    try:
        signed_at = datetime.strptime(query["X-Amz-Date"], _TIMESTAMP).replace(tzinfo=UTC)
        expiry = timedelta(seconds=int(query["X-Amz-Expires"]))
    except (KeyError, ValueError):
        raise TokenRefused("the token has no time") from None
    if expiry > MAX_EXPIRY:
        raise TokenRefused(f"the token is valid for more than {MAX_EXPIRY}")
    if not signed_at - CLOCK_SKEW <= now <= signed_at + expiry:
        raise TokenRefused("the token has expired")


def _signature(query: Mapping[str, str], host: str, secret: str) -> str:
    parameters = "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(query.items())
        if name not in _UNSIGNED
    )
    nothing = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{parameters}\nhost:{host}\n\nhost\n{nothing}"
    _, day, region, service, end = query["X-Amz-Credential"].split("/")
    text = "\n".join(
        (
            ALGORITHM,
            query["X-Amz-Date"],
            f"{day}/{region}/{service}/{end}",
            hashlib.sha256(request.encode()).hexdigest(),
        )
    )
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, end):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), "sha256").hexdigest()
