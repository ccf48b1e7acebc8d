"""Requests to the token endpoint of an OAuth server, over http or https.

A request has time limits for the connection, for a silence, and for the whole answer. The answer is
limited in size. Redirects are refused: they could lead to a host that is not allowed.
Errors hold what the server says about the failure, without the secrets of the request.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from sparkmirror.config.secrets.password import HIDDEN, Password
from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken
from sparkmirror.security.sasl_credentials import TokenUnavailable
from sparkmirror.security.tls.ssl_context import client_context

DEFAULT_TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 1_000_000
_MAX_ANSWER_S = 30.0
_MAX_SHOWN_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    """The endpoint, its time limits, and the `ssl.*` settings for it."""

    url: str
    connect_timeout_s: float = DEFAULT_TIMEOUT_S
    read_timeout_s: float = DEFAULT_TIMEOUT_S
    ssl_settings: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    """Without a trust store among them, the system's authorities are trusted."""

    def check(self, key: str) -> None:
        """Raise ConfigError if the URL or the trust store cannot be used."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError.of(key, f"{key}: {self.url} is not an http, https or file URL")
        if parts.username is not None:
            raise ConfigError.of(key, f"{key} may not hold a user name or a password")
        try:
            _ = parts.port
        except ValueError:
            raise ConfigError.of(key, f"{key}: {self.url} has an invalid port") from None
        if parts.scheme == "https":
            client_context(dict(self.ssl_settings))

    def retrieve(
        self,
        form: Mapping[str, str],
        headers: Mapping[str, str],
        secrets: Collection[Password],
        now_s: float | None = None,
    ) -> RetrievedToken:
        """Send the form and return the token of the answer. Raises TokenUnavailable."""
        status, body = self._send_form(urlencode(form), headers)
        if status != http.client.OK:
            reason = _refusal(body, secrets)
            raise TokenUnavailable(f"{self.url} answered {status}{reason}; {_advice(status)}")
        answer = _parse_json(body)
        token = answer.get("access_token") or answer.get("id_token")
        if not isinstance(token, str):
            raise TokenUnavailable(
                f"{self.url} answered without access_token; check that it is a token endpoint"
            )
        return RetrievedToken.parse(token, _lifetime_s(answer.get("expires_in")), now_s)

    def _send_form(self, body: str, headers: Mapping[str, str]) -> tuple[int, bytes]:
        connection = self._connect()
        try:
            assert connection.sock is not None
            connection.sock.settimeout(self.read_timeout_s)
            path = urlsplit(self.url)
            target = (path.path or "/") + (f"?{path.query}" if path.query else "")
            connection.request("POST", target, body.encode("ascii"), _with_defaults(headers))
            with connection.getresponse() as response:
                return response.status, self._read(response)
        except TimeoutError:
            raise TokenUnavailable(
                f"{self.url} did not answer within {self.read_timeout_s:.1f} seconds"
                " (sasl.login.read.timeout.ms)"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise TokenUnavailable(f"{self.url}: {_cause(error)}") from None
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        connection = self._new_connection()
        try:
            connection.connect()
        except TimeoutError:
            connection.close()
            raise TokenUnavailable(
                f"{self.url} cannot be reached within {self.connect_timeout_s:.1f} seconds"
                " (sasl.login.connect.timeout.ms)"
            ) from None
        except OSError as error:
            connection.close()
            raise TokenUnavailable(f"{self.url}: {_cause(error)}") from None
        return connection

    def _new_connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.url)
        host = parts.hostname or ""
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, parts.port, timeout=self.connect_timeout_s)
        try:
            context = client_context(dict(self.ssl_settings))
        except ConfigError as error:
            raise TokenUnavailable(f"{self.url}: {error}") from None
        return http.client.HTTPSConnection(
            host, parts.port, timeout=self.connect_timeout_s, context=context
        )

    def _read(self, response: http.client.HTTPResponse) -> bytes:
        deadline = time.monotonic() + max(_MAX_ANSWER_S, self.read_timeout_s)
        answer = b""
        while chunk := response.read1(1 << 16):
            answer += chunk
            if len(answer) > MAX_ANSWER_BYTES:
                raise TokenUnavailable(f"{self.url} answered more than {MAX_ANSWER_BYTES} bytes")
            if time.monotonic() > deadline:
                raise TokenUnavailable(f"{self.url} sends its answer too slowly")
        return answer


def _with_defaults(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        "Accept": "application/json",
        "Cache-Control": "no-cache",
        "Content-Type": "application/x-www-form-urlencoded",
        **headers,
    }


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not accepted: {error.verify_message}; set ssl.truststore.location"
            " among the options of sasl.jaas.config"
        )
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or str(error)).replace('_', ' ').lower()}"
    if isinstance(error, socket.gaierror):
        return f"its host name cannot be resolved: {error.strerror}"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    text = getattr(error, "strerror", None) or type(error).__name__
    return f"the connection failed: {text}"


def _parse_json(body: bytes) -> Mapping[str, Any]:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _lifetime_s(expires_in: object) -> float | None:
    """Return `expires_in`, which some servers send as text; None if it is no positive number."""
    try:
        seconds = float(str(expires_in))
    except ValueError:
        return None
    return seconds if 0 < seconds < float("inf") else None


def _refusal(body: bytes, secrets: Collection[Password]) -> str:
    """Return what the server says about a refusal (RFC 6749, 5.2), without secrets."""
    answer = _parse_json(body)
    said = [str(answer[key]) for key in ("error", "error_description") if answer.get(key)]
    text = " ".join(": ".join(said).split())
    for secret in secrets:
        if secret.value:
            text = text.replace(secret.value, HIDDEN)
    shown = "".join(char for char in text if char.isprintable())[:_MAX_SHOWN_CHARS]
    return f" {shown}" if shown else ""


def _advice(status: int) -> str:
    if status in (400, 401, 403):
        return "check the client id, its secret or key, and the scope"
    if 300 <= status < 400:
        return "redirects are not followed, set the URL of the endpoint itself"
    if status == 404:
        return "check sasl.oauthbearer.token.endpoint.url"
    return "check whether the server is well"
