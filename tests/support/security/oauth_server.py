"""An OAuth server: it issues signed tokens for client credentials and publishes its keys (JWKS)."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from sparkmirror.lab.cluster.cluster_spec import OAuthEndpoints

AUDIENCE = "kafka"
KEY_ID = "key-of-the-test"


class OAuthServer:
    """The server's keys, its clients, and how it behaves now. Created by `running_oauth_server`."""

    def __init__(self, base_url: str, clients: Mapping[str, str]) -> None:
        self.endpoints = OAuthEndpoints(
            jwks_url=f"{base_url}/jwks", token_url=f"{base_url}/token", audience=AUDIENCE
        )
        self.clients = dict(clients)
        self.lifetime_s = 3600.0
        """The lifetime of the next tokens."""
        self.outage: tuple[int, str] | None = None
        """The status and the error with which it answers every request for a token, if any."""
        self.tokens_issued = 0
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def issue_token(self, subject: str, **claims: object) -> str:
        """Return a signed token. `claims` replace those of the server."""
        now = time.time()
        every = {
            "iss": "oauth-server-of-the-test",
            "aud": AUDIENCE,
            "sub": subject,
            "iat": int(now),
            "exp": int(now + self.lifetime_s),
            **claims,
        }
        header = {"alg": "RS256", "kid": KEY_ID, "typ": "JWT"}
        signed = f"{_base64_json(header)}.{_base64_json(every)}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_base64(signature)}"

    def jwks(self) -> dict[str, Any]:
        """Return the public keys."""
        numbers = self._key.public_key().public_numbers()
        key = {
            "kty": "RSA",
            "use": "sig",
            "alg": "RS256",
            "kid": KEY_ID,
            "n": _base64(numbers.n.to_bytes(256, "big")),
            "e": _base64(numbers.e.to_bytes(3, "big")),
        }
        return {"keys": [key]}

    def token_response(self, authorization: str, form: str) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the answer to a request for a token."""
        if self.outage is not None:
            status, error = self.outage
            return status, {"error": error}
        fields = {name: values[0] for name, values in parse_qs(form).items()}
        if fields.get("grant_type") != "client_credentials":
            return 400, {"error": "unsupported_grant_type"}
        client, secret = _client_credentials(authorization, fields)
        if not client or self.clients.get(client) != secret:
            return 401, {"error": "invalid_client", "error_description": "unknown credentials"}
        self.tokens_issued += 1
        claims = {"scope": fields["scope"]} if "scope" in fields else {}
        return 200, {
            "access_token": self.issue_token(client, **claims),
            "token_type": "Bearer",
            "expires_in": int(self.lifetime_s),
        }


@contextmanager
def running_oauth_server(
    clients: Mapping[str, str], context: ssl.SSLContext | None = None
) -> Iterator[OAuthServer]:
    """Run a server on a free port in the block, over HTTPS if it gets a context."""
    http = _HttpServer(("127.0.0.1", 0), _Handler)
    if context is not None:
        http.socket = context.wrap_socket(
            http.socket, server_side=True, do_handshake_on_connect=False
        )
    scheme = "http" if context is None else "https"
    server = OAuthServer(f"{scheme}://127.0.0.1:{http.server_address[1]}", clients)
    http.oauth = server
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


class _HttpServer(ThreadingHTTPServer):
    daemon_threads = True
    oauth: OAuthServer


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path == "/jwks":
            self._answer(200, self._oauth.jwks())
        else:
            self._answer(404, {"error": "not_found"})

    def do_POST(self) -> None:
        form = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        if self.path == "/token":
            self._answer(*self._oauth.token_response(self.headers.get("Authorization", ""), form))
        else:
            self._answer(404, {"error": "not_found"})

    @property
    def _oauth(self) -> OAuthServer:
        assert isinstance(self.server, _HttpServer)
        return self.server.oauth

    def _answer(self, status: int, body: Mapping[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


def _client_credentials(authorization: str, fields: Mapping[str, str]) -> tuple[str, str]:
    """Return the client id and secret, from HTTP Basic or from the form."""
    kind, _, text = authorization.partition(" ")
    if kind.lower() == "basic":
        client, _, secret = base64.b64decode(text).decode().partition(":")
        return client, secret
    return fields.get("client_id", ""), fields.get("client_secret", "")


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _base64_json(data: Mapping[str, object]) -> str:
    return _base64(json.dumps(data).encode())
