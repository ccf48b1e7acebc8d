"""One broker as errors name it: socket and TLS errors become sparkmirror's exceptions here.

The text says what happened, on which broker, and what to check. It never holds a secret.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass

from sparkmirror.errors import ClusterError, ClusterTimeout, ClusterUnavailable, NotAuthorized
from sparkmirror.wire.net.address import Address

CHECK_PORT = "check that this is the right port for that security protocol"
CHECK_BROKER = "check whether the broker is well and can be reached from here"
CHECK_CERTIFICATES = "check the certificates and the trust store on both sides"


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
