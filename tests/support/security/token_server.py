"""A token server of OAuth on the loopback address: scripted answers, and the requests it got."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from sparkmirror.security.oauthbearer.jwt import encode_json, encode_part


def signed_token(lifetime_s: float = 3600, **claims: Any) -> str:
    """Return a JWT with a signature that means nothing: clients do not check it."""
    now_s = time.time()
    body = {"iat": now_s, "exp": now_s + lifetime_s, "sub": "alice", **claims}
    return f"{encode_json({'alg': 'RS256'})}.{encode_json(body)}.{encode_part(b'signature')}"


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A request as the server got it."""

    path: str
    headers: Mapping[str, str]
    form: Mapping[str, str]


@dataclass(slots=True)
class TokenServer:
    """The answer to the next requests, and the requests so far."""

    url: str
    status: int = 200
    body: bytes | None = None
    """The answer; by default a token that lives an hour."""
    headers: Mapping[str, str] = field(default_factory=dict)
    requests: list[TokenRequest] = field(default_factory=list)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def answer_json(self, status: int, **members: Any) -> None:
        """Answer with a JSON object."""
        self.status, self.body = status, json.dumps(members).encode()

    def answer(self) -> tuple[int, bytes]:
        """Return status and body of the next answer."""
        body = self.body
        if body is None:
            body = json.dumps({"access_token": signed_token(), "expires_in": 3600}).encode()
        return self.status, body


class _Server(http.server.ThreadingHTTPServer):
    """Shakes hands in the thread of the connection, and ignores clients that leave."""

    daemon_threads = True
    context: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        if self.context is not None:
            connection = self.context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing."""


@contextmanager
def running_token_server(key_store: Path | None = None) -> Iterator[TokenServer]:
    """Serve in the block, over https if there is a PEM file with key and certificate."""
    made = TokenServer(url="")
    made.may_answer.set()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            form = dict(parse_qsl(self.rfile.read(length).decode()))
            made.requests.append(TokenRequest(self.path, dict(self.headers), form))
            made.may_answer.wait(30)
            status, body = made.answer()
            self.send_response(status)
            for name, value in made.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = _Server(("127.0.0.1", 0), Handler)
    if key_store is not None:
        server.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.context.load_cert_chain(key_store)
    scheme = "http" if key_store is None else "https"
    made.url = f"{scheme}://127.0.0.1:{server.server_port}/token"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()
