"""Assertions: tokens that a client signs itself to prove who it is (RFC 7523).

The keys are Kafka's `sasl.oauthbearer.assertion.*`. A ready assertion is in a file; otherwise one
is made for each request from claims of the config, a template file, and the time. As in Java, the
template overrides the claims of the config, and the time overrides both.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sparkmirror.config.secrets.file_permissions import exposure_of
from sparkmirror.config.secrets.password import Password
from sparkmirror.config.warn_once import warn_once
from sparkmirror.security.jwt_signatures import sign
from sparkmirror.security.oauthbearer.jwt import encode_json, encode_part
from sparkmirror.security.sasl_credentials import TokenUnavailable

log = logging.getLogger(__name__)


class AssertionSource(Protocol):
    """Supplies assertions."""

    def __hash__(self) -> int:
        """Equal sources supply assertions of the same client."""

    def assertion(self) -> Password:
        """Return an assertion for one request. Raises TokenUnavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionFile:
    """`sasl.oauthbearer.assertion.file`: a ready assertion, read again for each request."""

    file: str

    def assertion(self) -> Password:
        """Read the file."""
        return Password(read_secret_text(self.file, "the assertion file").strip())


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedAssertion:
    """An assertion that is signed with a private key for each request."""

    algorithm: str
    private_key_file: str
    passphrase: Password | None = None
    claims: frozenset[tuple[str, str]] = frozenset()
    template_file: str = ""
    expires_in_s: int = 300
    valid_before_s: int = 60
    """`nbf` is so many seconds before now: the server's clock may be behind."""
    includes_id: bool = False
    header: frozenset[tuple[str, str]] = field(default=frozenset())

    def assertion(self) -> Password:
        """Read key and template, and sign."""
        header, claims = self.content(int(time.time()))
        signed = f"{encode_json(header)}.{encode_json(claims)}"
        key = read_secret_text(self.private_key_file, "the private key file")
        return Password(f"{signed}.{encode_part(self._sign(key, signed))}")

    def content(self, now_s: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the header and the claims of an assertion of this time."""
        header, claims = self._template()
        dynamic: dict[str, Any] = {
            "iat": now_s,
            "exp": now_s + self.expires_in_s,
            "nbf": now_s - self.valid_before_s,
        }
        if self.includes_id:
            dynamic["jti"] = str(uuid.uuid4())
        return (
            {**header, "alg": self.algorithm, "typ": "JWT"},
            {**dict(self.claims), **claims, **dynamic},
        )

    def _template(self) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        if not self.template_file:
            return {}, {}
        text = read_text(self.template_file, "the assertion template file")
        try:
            template = json.loads(text)
            header, claims = template.get("header", {}), template.get("payload", {})
        except (ValueError, AttributeError, RecursionError):
            header = claims = None
        if not isinstance(header, dict) or not isinstance(claims, dict):
            raise TokenUnavailable(
                f"{self.template_file} is not a template; write JSON with the objects header and"
                " payload"
            )
        return header, claims

    def _sign(self, key: str, signed: str) -> bytes:
        try:
            return sign(self.algorithm, key, self.passphrase, signed.encode("ascii"))
        except ValueError as error:
            raise TokenUnavailable(f"{self.private_key_file}: {error}") from None


def read_secret_text(file: str, what: str) -> str:
    """Return the text of a file; log a warning, once, if others may read the file.

    Raises TokenUnavailable.
    """
    text = read_text(file, what)
    exposure = exposure_of(Path(file))
    if exposure:
        warn_once(log, f"{what}: {exposure}")
    return text


def read_text(file: str, what: str) -> str:
    """Return the text of a file. Raises TokenUnavailable."""
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise TokenUnavailable(f"{what} {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise TokenUnavailable(f"{what} {file} holds bytes that are not UTF-8") from None
