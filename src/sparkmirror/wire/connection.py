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

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from sparkmirror.errors import ClusterError
from sparkmirror.wire.buffers import Pool
from sparkmirror.wire.channel import WAIT_S, Channel, Pending, forget
from sparkmirror.wire.codes import Code
from sparkmirror.wire.messages import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, A, Api, Q
from sparkmirror.wire.place import Address, Place, refusal
from sparkmirror.wire.sasl import Exchange
from sparkmirror.wire.transport import connect
from sparkmirror.wire.versions import Versions

LARGEST_FRAME = 1 << 28
SOFTWARE = "sparkmirror"
SOFTWARE_VERSION = "1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Who we are to a cluster. `cluster` is its alias; `security` has kafka-python's names."""

    cluster: str
    security: Mapping[str, Any] = field(default_factory=dict, repr=False)
    client_id: str = "sparkmirror"

    @property
    def protocol(self) -> str:
        """The security protocol."""
        return str(self.security.get("security_protocol") or "PLAINTEXT")

    @property
    def tls(self) -> ssl.SSLContext | None:
        """The TLS context, if the protocol wants one; without one of our own, the system's."""
        if "SSL" not in self.protocol:
            return None
        own: ssl.SSLContext | None = self.security.get("ssl_context")
        return own or ssl.create_default_context()


class Connection(Channel):
    """A channel that the broker has let in. Made by `open`."""

    def __init__(self, client: Client, address: Address, deadline: float) -> None:
        place = Place(cluster=client.cluster, address=address, protocol=client.protocol)
        try:
            transport = connect(address.host, address.port, client.tls, deadline)
        except OSError as error:
            raise place.translate(error, starting=True) from error
        super().__init__(place, transport, Pool(), client.client_id)
        self.versions = Versions(cluster=client.cluster, ranges={})
        self._client = client
        self._renew_at = float("inf")

    @classmethod
    def open(
        cls,
        client: Client,
        address: Address,
        *,
        timeout_s: float = WAIT_S,
        pool: Pool | None = None,
    ) -> Connection:
        """Connect and be let in, or raise one of our errors. Blocks up to the time given.

        Frames of later answers come from `pool`. It is not touched before this returns: it may
        belong to another thread than the one that opens.
        """
        deadline = time.monotonic() + timeout_s
        connection = cls(client, address, deadline)
        try:
            connection._agree_on_versions(deadline)
            if "SASL" in client.protocol:
                connection._log_in(deadline)
        except BaseException:
            connection.close()
            raise
        connection._largest_frame = LARGEST_FRAME
        if pool is not None:
            connection._pool = pool
        return connection

    def call(
        self,
        api: Api[Q, A],
        message: Q,
        *,
        timeout_s: float = WAIT_S,
        known: Sequence[int] | None = None,
    ) -> A:
        """Ask and wait for the answer. `known` narrows the versions that may be used."""
        return self.wait_for(api.ask(message, self.versions, known), timeout_s)

    def _submit(self, pending: Pending) -> None:
        """See to the session first, if it is about to end; the request waits for that."""
        renew = time.monotonic() >= self._renew_at and not self._holding
        self._holding = self._holding or renew
        super()._submit(pending)
        if renew:
            self._renew(pending.deadline)

    # -- opening -------------------------------------------------------------------------------

    def _agree_on_versions(self, deadline: float) -> None:
        answer = self._greet(max(API_VERSIONS.versions), deadline)
        if answer.error_code == Code.UNSUPPORTED_VERSION:
            # A broker older than us answers in version 0, with the range it knows.
            offered = Versions.read(self._client.cluster, answer)
            _, highest = offered.ranges.get(ApiVersionsRequest.API_KEY, (0, 0))
            answer = self._greet(highest, deadline)
        if answer.error_code:
            raise refusal(self._client.cluster, API_VERSIONS.name, Code(answer.error_code))
        self.versions = Versions.read(self._client.cluster, answer)

    def _greet(self, version: int, deadline: float) -> ApiVersionsResponse:
        hello = ApiVersionsRequest(
            client_software_name=SOFTWARE, client_software_version=SOFTWARE_VERSION
        )
        return self.wait_for(API_VERSIONS.request(hello, version), deadline - time.monotonic())

    def _log_in(self, deadline: float) -> None:
        def ask(api: Api[Q, A], message: Q) -> A:
            return self.call(api, message, timeout_s=deadline - time.monotonic())

        exchange = Exchange(self.place, self._client.security)
        exchange.shake(ask(SASL_HANDSHAKE, exchange.handshake()))
        while not exchange.is_done():
            exchange.receive(ask(SASL_AUTHENTICATE, exchange.authenticate()))
        self._let_in(exchange)

    # -- renewing ------------------------------------------------------------------------------

    def _let_in(self, exchange: Exchange) -> None:
        """Note when the session must be renewed; not for all connections at the same moment."""
        early = random.uniform(0.8, 0.9)  # noqa: S311 - spreads load, keeps no secret
        life_s = exchange.session_s or float("inf")
        self._renew_at = time.monotonic() + life_s * early

    def _renew(self, deadline: float) -> None:
        """Begin to log in anew, behind what is in flight; requests are held until that is done."""
        exchange = Exchange(self.place, self._client.security)

        def shaken(answer: SaslHandshakeResponse) -> None:
            with self._ending_on_refusal():
                exchange.shake(answer)
            go_on()

        def heard(answer: SaslAuthenticateResponse) -> None:
            with self._ending_on_refusal():
                exchange.receive(answer)
            go_on()

        def go_on() -> None:
            if exchange.is_done():
                self._renewed(exchange)
                return
            with self._ending_on_refusal():
                question = exchange.authenticate()
            turn = SASL_AUTHENTICATE.ask(question, self.versions)
            self._post(Pending(turn, heard, forget, deadline))

        handshake = SASL_HANDSHAKE.ask(exchange.handshake(), self.versions)
        self._post(Pending(handshake, shaken, forget, deadline))

    def _renewed(self, exchange: Exchange) -> None:
        self._let_in(exchange)
        self._holding = False
        while self._held:
            self._post(self._held.popleft())

    @contextmanager
    def _ending_on_refusal(self) -> Iterator[None]:
        try:
            yield
        except ClusterError as error:
            self._fail(error, error.__cause__)
