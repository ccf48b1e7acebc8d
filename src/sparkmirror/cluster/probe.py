"""One question to one broker: do you let me in, and whom do you know?

The client library retries a refused login until its time is up and then says "unable to
bootstrap". This asks once, on a socket of its own, and says within milliseconds what is wrong:
nobody there, not TLS, wrong certificate, wrong password. It speaks with the library's message
schemas and SASL mechanisms.
"""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.api_header import ResponseClassRegistry
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from sparkmirror.cluster import faults
from sparkmirror.cluster.access import Access, Address
from sparkmirror.errors import ClusterTimeout, ClusterUnavailable, NotAuthorized

_UNSUPPORTED_VERSION = 35
_LARGEST_FRAME = 1 << 24
_CLIENT_ID = "sparkmirror-probe"

# The library carries no types: its names are taken in here once, as what they are to us.
_mechanism_class: Any = get_sasl_mechanism
_response_class: Any = ResponseClassRegistry.get_response_class
_ApiVersions: Any = ApiVersionsRequest
_Metadata: Any = MetadataRequest
_Handshake: Any = SaslHandshakeRequest
_Authenticate: Any = SaslAuthenticateRequest
_Versions: Any = BrokerVersionData


@dataclass(frozen=True, slots=True, kw_only=True)
class Glimpse:
    """What one broker said: which cluster it is of, and the brokers it takes for alive."""

    cluster_id: str
    brokers: frozenset[int]


def probe(access: Access, address: Address, timeout_s: float) -> Glimpse:
    """Ask one broker for the cluster's brokers.

    Raises ClusterUnavailable or ClusterTimeout if it may come right by waiting, NotAuthorized if
    it will not: wrong certificate, wrong mechanism, wrong password.
    """
    with _Conversation(access, address, timeout_s) as talk:
        answer = talk.ask(_Metadata(topics=[], allow_auto_topic_creation=False))
    return Glimpse(
        cluster_id=str(answer.cluster_id),
        brokers=frozenset(int(broker.node_id) for broker in answer.brokers),
    )


class _Conversation:
    """A connection that has been let in; one request at a time."""

    def __init__(self, access: Access, address: Address, timeout_s: float) -> None:
        self._access = access
        self._address = address
        self._timeout_s = timeout_s
        self._versions: Any = None

    def __enter__(self) -> Self:
        try:
            self._socket = self._connect()
        except OSError as error:
            raise self._explain(error) from error
        try:
            self._agree_on_versions()
            if self._access.security.login is not None:
                self._log_in()
        except BaseException:
            self._socket.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def ask(self, request: Any) -> Any:
        """Send a request and return its answer."""
        if request.API_VERSION is None:
            request.API_VERSION = self._versions.api_version(request)
        request.with_header(0, _CLIENT_ID)
        answer_class = _response_class(request.header)
        try:
            self._socket.sendall(request.encode(header=True, framed=True))
            (size,) = struct.unpack(">i", self._exactly(4))
            if not 4 <= size <= _LARGEST_FRAME:
                raise ConnectionError(f"an answer of {size} bytes makes no sense")
            frame = self._exactly(size)
        except OSError as error:
            raise self._explain(error) from error
        return answer_class.decode(frame, header=True)

    def _connect(self) -> socket.socket:
        plain = socket.create_connection(self._address, self._timeout_s)
        context = self._access.security.tls
        if context is None:
            return plain
        try:
            return context.wrap_socket(plain, server_hostname=self._address.host)
        except BaseException:
            plain.close()
            raise

    def _agree_on_versions(self) -> None:
        version = int(_ApiVersions.max_version)
        answer = self.ask(self._version_question(version))
        if answer.error_code == _UNSUPPORTED_VERSION:
            # The broker is older than the library and answers with the range it knows.
            known = [key.max_version for key in answer.api_keys if key.api_key == answer.API_KEY]
            answer = self.ask(self._version_question(min([*known, version])))
        if answer.error_code:
            raise faults.of_code(answer.error_code, None, self._access.cluster)
        self._versions = _Versions(
            api_versions={
                key.api_key: (key.min_version, key.max_version) for key in answer.api_keys
            }
        )

    @staticmethod
    def _version_question(version: int) -> Any:
        return _ApiVersions(
            version=version, client_software_name="sparkmirror", client_software_version="1"
        )

    def _log_in(self) -> None:
        words = self._access.security.keywords()
        name = words["sasl_mechanism"]
        answer = self.ask(_Handshake(mechanism=name, version=1))
        if answer.error_code:
            offered = ", ".join(answer.mechanisms)
            said = f"{self._address} does not offer {name}, only {offered}"
            raise faults.of_code(answer.error_code, said, self._access.cluster)
        mechanism = _mechanism_class(name)(host=self._address.host, **words)
        while not mechanism.is_done():
            answer = self.ask(_Authenticate(auth_bytes=mechanism.auth_bytes(), max_version=2))
            if answer.error_code:
                said = f"{self._address}: {answer.error_message}"
                raise faults.of_code(answer.error_code, said, self._access.cluster)
            mechanism.receive(answer.auth_bytes)

    def _exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            chunk = self._socket.recv(count - len(received))
            if not chunk:
                raise ConnectionError("the broker hung up")
            received += chunk
        return bytes(received)

    def _explain(self, error: OSError) -> Exception:
        where = f"{self._address} ({self._access.security.protocol})"
        cluster = self._access.cluster
        if isinstance(error, TimeoutError):
            said = f"{where} did not answer within {self._timeout_s:.1f} s"
            return ClusterTimeout(cluster, f"{said}: look whether the broker is well")
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            said = f"{where} and we do not agree on TLS: {error.strerror or error}"
            return NotAuthorized(cluster, f"{said}: check the port, the protocol, the certificates")
        said = f"{where} cannot be talked to: {error.strerror or error}"
        return ClusterUnavailable(cluster, f"{said}: check the port and the protocol")
