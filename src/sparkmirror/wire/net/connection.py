"""One authenticated connection to one broker.

`open` blocks (connect, TLS, ApiVersions, SASL) up to a deadline. It may run in any thread, so that
a dead broker does not stall an event loop. After that the connection is a channel that belongs to
one thread and does not block; `call` blocks, for callers without an event loop.

If the broker limits the session, the connection re-authenticates before the session ends (KIP-368):
behind the requests in flight; new requests wait. The SASL mechanism then runs in the event loop, so
a token provider must not block.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sparkmirror.backoff import JITTER
from sparkmirror.errors import ClusterError, ConfigError
from sparkmirror.security.client_security import ClientSecurity, SecuritySource
from sparkmirror.security.sasl_credentials import SaslLogin
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.buffer_pool import BufferPool
from sparkmirror.wire.net.channel import DEFAULT_TIMEOUT_S, Channel, InFlightRequest, ignore_error
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.sasl.authenticator import SaslClientAuthenticator
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
from sparkmirror.wire.protocol.error_code_exceptions import error_for_code
from sparkmirror.wire.protocol.error_codes import ErrorCode
from sparkmirror.wire.protocol.kafka_python_messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateResponse,
    SaslHandshakeResponse,
)

log = logging.getLogger(__name__)

CHECK_LOGIN: Final = "the next attempt uses the token or ticket that has arrived meanwhile"
CHECK_SETTINGS: Final = "the next attempt reads them again"
MAX_RESPONSE_BYTES: Final = 1 << 28
CLIENT_SOFTWARE_NAME: Final = "sparkmirror"
CLIENT_SOFTWARE_VERSION: Final = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """How clients connect. `cluster` is the alias of their cluster."""

    cluster: str
    security: SecuritySource = field(default_factory=ClientSecurity, repr=False)
    client_id: str = "sparkmirror"
    file_prefix: str | None = None
    """The prefix of the client's keys in a worker's file; None if they are not in that file."""
    request_timeout_s: float | None = None
    """How long one attempt of a router may take; None: as long as at any other cluster."""


class BrokerConnection(Channel):
    """An authenticated channel. Created by `open`."""

    def __init__(self, client: ClientConfig, address: Address, deadline: float) -> None:
        endpoint = Endpoint(
            cluster=client.cluster,
            address=address,
            security_protocol=client.security.protocol,
            file_prefix=client.file_prefix,
        )
        try:
            security = client.security.current()
            transport = connect(address.host, address.port, security.ssl_context, deadline)
        except ConfigError as error:
            what = f"its security settings cannot be used: {error}"
            raise endpoint.unavailable(what, CHECK_SETTINGS) from error
        except OSError as error:
            raise endpoint.translate_os_error(error, starting=True) from error
        super().__init__(endpoint, transport, BufferPool(), client.client_id)
        self.api_versions = NodeApiVersions(cluster=client.cluster, ranges={})
        self._client = client
        self._login = security.login
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
        """Connect and authenticate. Blocks up to the timeout. Raises ClusterError.

        Frames of later responses come from `pool`. This call does not use it: the pool may belong
        to another thread.
        """
        deadline = time.monotonic() + timeout_s
        connection = cls(client, address, deadline)
        try:
            connection._negotiate_versions(deadline)
            connection._authenticate(deadline)
        except BaseException:
            connection.close()
            raise
        connection._max_response_bytes = MAX_RESPONSE_BYTES
        if pool is not None:
            connection._pool = pool
        log.debug(
            "Connected to %s, %s, as client %s",
            client.cluster,
            connection.endpoint,
            client.client_id,
        )
        return connection

    def call(
        self,
        api: Api[Q, A],
        message: Q,
        *,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        versions: Sequence[int] | None = None,
    ) -> A:
        """Send a request and wait for the response. `versions` limits the versions of the API."""
        return self.send_and_wait(
            api.build_request(message, self.api_versions, versions), timeout_s
        )

    def _submit(self, pending: InFlightRequest) -> None:
        """Re-authenticate first if the session is about to end; the request waits for that."""
        reauthenticate = time.monotonic() >= self._reauthenticate_at and not self._is_deferring
        self._is_deferring = self._is_deferring or reauthenticate
        super()._submit(pending)
        if reauthenticate:
            self._reauthenticate(pending.deadline)

    # -- opening -------------------------------------------------------------------------------

    def _negotiate_versions(self, deadline: float) -> None:
        answer = self._request_api_versions(max(API_VERSIONS.versions), deadline)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # An older broker responds in version 0, with the versions it supports.
            supported = NodeApiVersions.from_response(self._client.cluster, answer)
            _, highest = supported.ranges.get(ApiVersionsRequest.API_KEY, (0, 0))
            answer = self._request_api_versions(highest, deadline)
        if answer.error_code:
            raise error_for_code(
                self._client.cluster, API_VERSIONS.name, ErrorCode(answer.error_code)
            )
        self.api_versions = NodeApiVersions.from_response(self._client.cluster, answer)

    def _request_api_versions(self, version: int, deadline: float) -> ApiVersionsResponse:
        message = ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=CLIENT_SOFTWARE_VERSION,
        )
        return self.send_and_wait(
            API_VERSIONS.build_request_at(message, version), deadline - time.monotonic()
        )

    def _authenticate(self, deadline: float) -> None:
        if self._login is None:
            # A listener with SASL answers ApiVersions, then closes at the first other request.
            self._has_responded = False
            return

        def call(api: Api[Q, A], message: Q) -> A:
            return self.call(api, message, timeout_s=deadline - time.monotonic())

        exchange = SaslClientAuthenticator(self.endpoint, self._login)
        exchange.on_handshake_response(call(SASL_HANDSHAKE, exchange.handshake_request()))
        if time.monotonic() > deadline:
            raise self.endpoint.timed_out("the login took too long to prepare", CHECK_LOGIN)
        while not exchange.is_complete():
            exchange.on_authenticate_response(
                call(SASL_AUTHENTICATE, exchange.authenticate_request())
            )
        self._schedule_reauthentication(exchange)

    # -- re-authentication ---------------------------------------------------------------------

    def _schedule_reauthentication(self, exchange: SaslClientAuthenticator) -> None:
        """Set the time of the next re-authentication, spread over connections."""
        fraction = JITTER.uniform(0.8, 0.9)
        lifetime_s = exchange.session_lifetime_s or float("inf")
        self._reauthenticate_at = time.monotonic() + lifetime_s * fraction

    def _reauthenticate(self, deadline: float) -> None:
        """Start re-authentication behind the requests in flight. New requests wait for its end."""
        exchange = SaslClientAuthenticator(self.endpoint, self._renewed_login())

        def on_handshake(answer: SaslHandshakeResponse) -> None:
            with self._closing_on_error():
                exchange.on_handshake_response(answer)
            authenticate_further()

        def on_authenticate(answer: SaslAuthenticateResponse) -> None:
            with self._closing_on_error():
                exchange.on_authenticate_response(answer)
            authenticate_further()

        def authenticate_further() -> None:
            if exchange.is_complete():
                self._on_reauthenticated(exchange)
                return
            with self._closing_on_error():
                message = exchange.authenticate_request()
            request = SASL_AUTHENTICATE.build_request(message, self.api_versions)
            self._enqueue(InFlightRequest(request, on_authenticate, ignore_error, deadline))

        handshake = SASL_HANDSHAKE.build_request(exchange.handshake_request(), self.api_versions)
        self._enqueue(InFlightRequest(handshake, on_handshake, ignore_error, deadline))

    def _renewed_login(self) -> SaslLogin:
        """Return the login as configured now; the one of this connection if that is unreadable."""
        assert self._login is not None, "only a session of SASL ends"
        try:
            return self._client.security.current().login or self._login
        except ConfigError as error:
            log.warning("%s: %s", self.endpoint, error)
            return self._login

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
