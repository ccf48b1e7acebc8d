"""One authenticated connection to one broker.

Opening blocks (connect, TLS, ApiVersions, SASL), with a deadline, and may be done in any thread, so
that a dead broker stalls nobody. From then on it is a channel that belongs to one thread and does
not block; `call` waits, for those who have no loop.

A session that the broker limits is renewed before it ends, behind what is in flight; what is asked
meanwhile waits its turn (KIP-368). That runs the SASL mechanism in the loop: a token provider must
have its token at hand.
"""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sparkmirror.errors import ClusterError
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffers import BufferPool
from sparkmirror.wire.net.channel import DEFAULT_TIMEOUT_S, Channel, InFlightRequest, ignore_error
from sparkmirror.wire.net.endpoint import Endpoint
from sparkmirror.wire.net.sasl import SaslClientAuthenticator
from sparkmirror.wire.net.transport import connect
from sparkmirror.wire.protocol.api_versions import NodeApiVersions
from sparkmirror.wire.protocol.apis import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    A,
    Api,
    Q,
)
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)
from sparkmirror.wire.protocol.response_errors import error_for_code

MAX_RESPONSE_BYTES = 1 << 28
CLIENT_SOFTWARE_NAME = "sparkmirror"
CLIENT_SOFTWARE_VERSION = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Who we are to a cluster. `cluster` is its alias; `security` has kafka-python's names."""

    cluster: str
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    client_id: str = "sparkmirror"

    @property
    def security_protocol(self) -> str:
        """The security protocol."""
        return str(self.security.get("security_protocol") or "PLAINTEXT")

    @property
    def ssl_context(self) -> ssl.SSLContext | None:
        """The TLS context, if the protocol wants one; without one of our own, the system's."""
        if "SSL" not in self.security_protocol:
            return None
        own: ssl.SSLContext | None = self.security.get("ssl_context")
        return own or ssl.create_default_context()


class BrokerConnection(Channel):
    """A channel that the broker has let in. Made by `open`."""

    def __init__(self, client: ClientConfig, address: Address, deadline: float) -> None:
        place = Endpoint(
            cluster=client.cluster, address=address, security_protocol=client.security_protocol
        )
        try:
            transport = connect(address.host, address.port, client.ssl_context, deadline)
        except OSError as error:
            raise place.translate_os_error(error, starting=True) from error
        super().__init__(place, transport, BufferPool(), client.client_id)
        self.api_versions = NodeApiVersions(cluster=client.cluster, ranges={})
        self._client = client
        self._reauthenticate_at = float("inf")

    @classmethod
    def open(
        cls,
        client: ClientConfig,
        address: Address,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        pool: BufferPool | None = None,
    ) -> BrokerConnection:
        """Connect and be let in, or raise one of our errors. Blocks up to the time given.

        Frames of later answers come from `pool`. It is not touched before this returns: it may
        belong to another thread than the one that opens.
        """
        deadline = time.monotonic() + timeout_s
        connection = cls(client, address, deadline)
        try:
            connection._negotiate_versions(deadline)
            if "SASL" in client.security_protocol:
                connection._authenticate(deadline)
        except BaseException:
            connection.close()
            raise
        connection._max_response_bytes = MAX_RESPONSE_BYTES
        if pool is not None:
            connection._pool = pool
        return connection

    def call(
        self,
        api: Api[Q, A],
        message: Q,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        known: Sequence[int] | None = None,
    ) -> A:
        """Ask and wait for the answer. `known` narrows the versions that may be used."""
        return self.send_and_wait(api.build_request(message, self.api_versions, known), timeout_s)

    def _submit(self, pending: InFlightRequest) -> None:
        """See to the session first, if it is about to end; the request waits for that."""
        renew = time.monotonic() >= self._reauthenticate_at and not self._is_deferring
        self._is_deferring = self._is_deferring or renew
        super()._submit(pending)
        if renew:
            self._reauthenticate(pending.deadline)

    # -- opening -------------------------------------------------------------------------------

    def _negotiate_versions(self, deadline: float) -> None:
        answer = self._request_api_versions(max(API_VERSIONS.versions), deadline)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # A broker older than us answers in version 0, with the range it knows.
            offered = NodeApiVersions.from_response(self._client.cluster, answer)
            _, highest = offered.ranges.get(ApiVersionsRequest.API_KEY, (0, 0))
            answer = self._request_api_versions(highest, deadline)
        if answer.error_code:
            raise error_for_code(
                self._client.cluster, API_VERSIONS.name, ErrorCode(answer.error_code)
            )
        self.api_versions = NodeApiVersions.from_response(self._client.cluster, answer)

    def _request_api_versions(self, version: int, deadline: float) -> ApiVersionsResponse:
        hello = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=CLIENT_SOFTWARE_VERSION,
        )
        return self.send_and_wait(
            API_VERSIONS.build_request_at(hello, version), deadline - time.monotonic()
        )

    def _authenticate(self, deadline: float) -> None:
        def ask(api: Api[Q, A], message: Q) -> A:
            return self.call(api, message, timeout_s=deadline - time.monotonic())

        exchange = SaslClientAuthenticator(self.endpoint, self._client.security)
        exchange.on_handshake_response(ask(SASL_HANDSHAKE, exchange.handshake_request()))
        while not exchange.is_complete():
            exchange.on_authenticate_response(
                ask(SASL_AUTHENTICATE, exchange.authenticate_request())
            )
        self._schedule_reauthentication(exchange)

    # -- renewing ------------------------------------------------------------------------------

    def _schedule_reauthentication(self, exchange: SaslClientAuthenticator) -> None:
        """Note when the session must be renewed; not for all connections at the same moment."""
        early = random.uniform(0.8, 0.9)  # noqa: S311 - spreads load, keeps no secret
        life_s = exchange.session_lifetime_s or float("inf")
        self._reauthenticate_at = time.monotonic() + life_s * early

    def _reauthenticate(self, deadline: float) -> None:
        """Begin to log in anew, behind what is in flight; requests are held until that is done."""
        exchange = SaslClientAuthenticator(self.endpoint, self._client.security)

        def shaken(answer: SaslHandshakeResponse) -> None:
            with self._closing_on_error():
                exchange.on_handshake_response(answer)
            go_on()

        def heard(answer: SaslAuthenticateResponse) -> None:
            with self._closing_on_error():
                exchange.on_authenticate_response(answer)
            go_on()

        def go_on() -> None:
            if exchange.is_complete():
                self._on_reauthenticated(exchange)
                return
            with self._closing_on_error():
                question = exchange.authenticate_request()
            turn = SASL_AUTHENTICATE.build_request(question, self.api_versions)
            self._enqueue(InFlightRequest(turn, heard, ignore_error, deadline))

        handshake = SASL_HANDSHAKE.build_request(exchange.handshake_request(), self.api_versions)
        self._enqueue(InFlightRequest(handshake, shaken, ignore_error, deadline))

    def _on_reauthenticated(self, exchange: SaslClientAuthenticator) -> None:
        self._schedule_reauthentication(exchange)
        self._is_deferring = False
        while self._deferred:
            self._enqueue(self._deferred.popleft())

    @contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        try:
            yield
        except ClusterError as error:
            self._fail(error, error.__cause__)
