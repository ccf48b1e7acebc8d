"""The IAM listener of an MSK broker: TLS and the login in front of a real broker.

The listener performs the SASL exchange itself, also when a client logs in again, and checks the
token as MSK does. It forwards all other requests to the broker's plaintext listener. That listener
must advertise the address of this one.
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.wire.net.address import Address
from tests.support.security.msk_iam_token import TokenRefused, verify_token
from tests.support.security.sasl_frames import (
    API_VERSIONS,
    FETCH,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    RequestFrame,
    authenticate_response,
    handshake_response,
    token_of,
)

_CHUNK = 1 << 16
_LENGTH = struct.Struct(">i")


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class MskIamListener:
    """Listens at once; serves after `forward_to`. Use: `with MskIamListener(...) as listener:`."""

    authority: CertificateAuthority
    """Issues the listener's certificate."""
    region: str
    secrets: Mapping[str, str] = field(repr=False)
    """The secret keys of the known access key ids. A test may replace it."""
    session_lifetime_ms: int = 0
    """The lifetime of the next sessions; 0 is no limit."""
    clock: Callable[[], datetime] = _utc_now
    logins: list[str] = field(default_factory=list)
    """The access key ids of all logins, in order."""
    refusals: list[str] = field(default_factory=list)
    """The reasons of all refusals, in order."""
    renewals_after_fetches: int = 0
    """How often a client has logged in again on a connection on which it had fetched records."""
    _context: ssl.SSLContext = field(init=False)
    _server: socket.socket = field(init=False)
    _broker: Address | None = None
    _sockets: set[socket.socket] = field(default_factory=set)

    def __enter__(self) -> MskIamListener:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.authority.issue("msk"))
        self._server = socket.create_server(("127.0.0.1", 0))
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self._server, *self._sockets):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._server.close()

    @property
    def address(self) -> str:
        """The address of the listener, as host:port."""
        return f"127.0.0.1:{self._server.getsockname()[1]}"

    def forward_to(self, broker: Address) -> None:
        """Accept connections; forward the requests of those that log in to this broker."""
        self._broker = broker
        threading.Thread(target=self._accept, daemon=True).start()

    def verify(self, token: str) -> str:
        """Return the access key id of a valid token. Raises TokenRefused."""
        try:
            access_key = verify_token(
                token, region=self.region, secrets=self.secrets, now=self.clock()
            )
        except TokenRefused as error:
            self.refusals.append(str(error))
            raise
        self.logins.append(access_key)
        return access_key

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        assert self._broker
        self._sockets.add(accepted)
        with (
            contextlib.suppress(OSError),
            accepted,
            self._context.wrap_socket(accepted, server_side=True) as client,
            socket.create_connection(self._broker) as broker,
        ):
            _Session(self, client, broker).run()
        self._sockets.discard(accepted)


class _Session:
    """One connection of a client, served by one thread."""

    def __init__(
        self, listener: MskIamListener, client: ssl.SSLSocket, broker: socket.socket
    ) -> None:
        self._listener = listener
        self._client = client
        self._broker = broker
        self._unanswered = 0
        """How many requests the broker has not answered yet."""
        self._session_ends_at = float("-inf")
        self._has_fetched = False

    def run(self) -> None:
        """Serve until one side closes the connection."""
        requests, responses = _Frames(self._client), _Frames(self._broker)
        while True:
            if self._client.pending():
                readable: list[socket.socket] = [self._client]
            else:
                readable, _, _ = select.select([self._client, self._broker], [], [])
            if self._broker in readable:
                for response in responses.receive():
                    self._unanswered -= 1
                    self._client.sendall(response)
            if self._client in readable:
                for request in requests.receive():
                    self._handle(RequestFrame.parse(request), request, responses)
            if requests.is_closed or responses.is_closed:
                return

    def _handle(self, request: RequestFrame, frame: bytes, responses: _Frames) -> None:
        if request.api_key in (SASL_HANDSHAKE, SASL_AUTHENTICATE):
            self._wait_for_broker(responses)
            answer = (
                handshake_response(request, "OAUTHBEARER")
                if request.api_key == SASL_HANDSHAKE
                else self._authenticate(request)
            )
            self._client.sendall(answer)
            return
        if request.api_key != API_VERSIONS and time.monotonic() > self._session_ends_at:
            raise ConnectionAbortedError("no login, or the session is over")
        self._has_fetched = self._has_fetched or request.api_key == FETCH
        self._unanswered += 1
        self._broker.sendall(frame)

    def _wait_for_broker(self, responses: _Frames) -> None:
        """Forward the responses to earlier requests: the client expects them in order."""
        while self._unanswered and not responses.is_closed:
            for response in responses.receive():
                self._unanswered -= 1
                self._client.sendall(response)

    def _authenticate(self, request: RequestFrame) -> bytes:
        try:
            self._listener.verify(token_of(request))
        except TokenRefused as error:
            return authenticate_response(request, error=f"[test]: {error}")
        self._listener.renewals_after_fetches += self._has_fetched
        lifetime_ms = self._listener.session_lifetime_ms
        self._session_ends_at = time.monotonic() + (lifetime_ms / 1000 or float("inf"))
        return authenticate_response(request, session_lifetime_ms=lifetime_ms)


class _Frames:
    """The frames that arrive at a socket, each with its length."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._received = bytearray()
        self.is_closed = False

    def receive(self) -> Iterator[bytes]:
        """Read once; yield the frames that are complete."""
        chunk = self._socket.recv(_CHUNK)
        self.is_closed = not chunk
        self._received += chunk
        while len(self._received) >= _LENGTH.size:
            size = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < size:
                return
            frame = bytes(self._received[:size])
            del self._received[:size]
            yield frame
