"""One broker as errors name it: socket and TLS errors become sparkmirror's exceptions here.

The text says what happened, on which broker, and what to check: also file and line of the keys, if
the process has them from a file. It never holds a secret.
"""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass

from sparkmirror.config.files.client_config_line_numbers import locations_in_environment
from sparkmirror.errors import ClusterError, ClusterTimeout, ClusterUnavailable, NotAuthorized
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.tls_errors import tls_advice

CHECK_PORT = (
    "check that this is the right port for that security protocol"
    " (bootstrap.servers, security.protocol)"
)
CHECK_BROKER = "check whether the broker is well and can be reached from here"
TLS_CLOSED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""The broker closed the connection. Which of the two is raised depends on the OpenSSL release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One broker as errors name it. `cluster` is the alias of its cluster."""

    cluster: str
    address: Address
    security_protocol: str
    file_prefix: str | None = None
    """The prefix of the client's keys in a worker's file; None if they are not in that file."""

    def __str__(self) -> str:
        return f"{self.security_protocol} {self.address}"

    def unavailable(self, what: str, advice: str) -> ClusterUnavailable:
        """The error for a broker that cannot be reached now."""
        return ClusterUnavailable(self.cluster, self._describe(what, advice))

    def timed_out(self, what: str, advice: str = CHECK_BROKER) -> ClusterTimeout:
        """The error for a response that did not arrive in time."""
        return ClusterTimeout(self.cluster, self._describe(what, advice))

    def not_authorized(self, what: str, advice: str) -> NotAuthorized:
        """The error for a broker that refuses this client."""
        return NotAuthorized(self.cluster, self._describe(what, advice))

    def _describe(self, what: str, advice: str) -> str:
        text = f"{self}: {what}; {advice}"
        written = locations_in_environment(os.environ, self.cluster, text, self.file_prefix)
        return f"{text}; see {' and '.join(written)}" if written else text

    def translate_os_error(self, error: OSError, *, starting: bool) -> ClusterError:
        """Return the exception for an error of a socket.

        `starting` is true until the first response of the broker. Until then the likely reason is
        a port of another protocol.
        """
        if isinstance(error, ssl.SSLError) and not isinstance(error, TLS_CLOSED):
            return self._translate_tls_error(error)
        if isinstance(error, TimeoutError):
            return self.timed_out("no answer in time")
        if isinstance(error, socket.gaierror):
            what = f"the host name cannot be resolved: {error.strerror}"
            return self.unavailable(what, "check bootstrap.servers and the name service")
        if isinstance(error, ConnectionRefusedError):
            return self.unavailable("connection refused", "check whether the broker runs")
        closed = isinstance(error, TLS_CLOSED)
        what = "it closed the connection" if closed else error.strerror or str(error)
        if starting:
            return self.unavailable(f"{what}, before its first response", CHECK_PORT)
        return self.unavailable(what, CHECK_BROKER)

    def _translate_tls_error(self, error: ssl.SSLError) -> ClusterError:
        if isinstance(error, ssl.SSLCertVerificationError):
            what = f"its certificate is not accepted: {error.verify_message}"
            return self.not_authorized(what, tls_advice(error))
        reason = (error.reason or str(error)).replace("_", " ").lower()
        return self.not_authorized(
            f"TLS failed: {reason}", f"{tls_advice(error)}, and {CHECK_PORT}"
        )
