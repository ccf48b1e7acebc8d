"""Where a broker is, and how errors that happen there are told.

The one place where what goes wrong on a socket, in TLS or in an answer becomes one of our errors.
The text says what happened, where, and what to look at; it never holds a secret.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import NamedTuple, Self

from sparkmirror.errors import (
    ClusterError,
    ClusterTimeout,
    ClusterUnavailable,
    NotAuthorized,
    RequestRefused,
    TopicMissing,
)
from sparkmirror.wire.protocol.error_codes import ErrorAction, ErrorCode

CHECK_PORT = "check that this is the right port for that security protocol"
CHECK_BROKER = "check whether the broker is well and can be reached from here"
CHECK_CERTIFICATES = "check the certificates and the trust store on both sides"


class Address(NamedTuple):
    """One broker's host and port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `host:port`; an IPv6 host stands in brackets."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(f"{text!r} is not of the form host:port")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One broker as errors name it. `cluster` is the alias people know it by."""

    cluster: str
    address: Address
    security_protocol: str

    def __str__(self) -> str:
        return f"{self.security_protocol} {self.address}"

    def unavailable(self, what: str, advice: str) -> ClusterUnavailable:
        """Say that this broker cannot be talked to just now."""
        return ClusterUnavailable(self.cluster, f"{self}: {what}; {advice}")

    def timed_out(self, what: str) -> ClusterTimeout:
        """Say that an answer did not come in time."""
        return ClusterTimeout(self.cluster, f"{self}: {what}; {CHECK_BROKER}")

    def not_authorized(self, what: str, advice: str) -> NotAuthorized:
        """Say that this broker does not let us in."""
        return NotAuthorized(self.cluster, f"{self}: {what}; {advice}")

    def translate_os_error(self, error: OSError, *, starting: bool) -> ClusterError:
        """Turn what a socket raised into one of our errors.

        `starting` is true until the broker has answered for the first time: until then a port that
        speaks another protocol is the likely reason for whatever is strange.
        """
        if isinstance(error, ssl.SSLError) and not isinstance(error, ssl.SSLEOFError):
            return self._translate_tls_error(error)
        if isinstance(error, TimeoutError):
            return self.timed_out("no answer in time")
        if isinstance(error, socket.gaierror):
            said = f"the host name cannot be resolved: {error.strerror}"
            return self.unavailable(said, "check bootstrap.servers and the name service")
        if isinstance(error, ConnectionRefusedError):
            return self.unavailable("connection refused", "check whether the broker runs")
        closed = isinstance(error, ssl.SSLEOFError)
        said = "it closed the connection" if closed else error.strerror or str(error)
        if starting:
            return self.unavailable(f"{said}, before it said anything", CHECK_PORT)
        return self.unavailable(said, CHECK_BROKER)

    def _translate_tls_error(self, error: ssl.SSLError) -> ClusterError:
        if isinstance(error, ssl.SSLCertVerificationError):
            said = f"its certificate is not accepted: {error.verify_message}"
            return self.not_authorized(said, CHECK_CERTIFICATES)
        said = (error.reason or str(error)).replace("_", " ").lower()
        return self.not_authorized(f"TLS failed: {said}", f"{CHECK_CERTIFICATES}, and {CHECK_PORT}")


def error_for_code(
    cluster: str, api: str, code: ErrorCode, message: str | None = None
) -> ClusterError:
    """Build the error for a code that ended a whole call; `code` stays readable on it."""
    said = f"{api} answered {code}" + (f": {message}" if message else "")
    if code.action is ErrorAction.NOT_AUTHORIZED:
        return NotAuthorized(cluster, f"{said}; grant the right it needs")
    if code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return TopicMissing(cluster, f"{said}; create the topic, or let this user see it")
    if code is ErrorCode.REQUEST_TIMED_OUT:
        return ClusterTimeout(cluster, f"{said}; {CHECK_BROKER}")
    if code.is_retriable:
        return ClusterUnavailable(cluster, f"{said}; try again in a while")
    if code.action is ErrorAction.FENCED:
        said += "; another has taken over, so stop here"
    return RequestRefused(cluster, said, code=code.value)
