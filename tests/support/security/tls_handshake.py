"""A TLS handshake in memory, between a client's context and a server's."""

from __future__ import annotations

import ssl
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Handshake:
    """Both sides after a handshake."""

    client: ssl.SSLObject
    server: ssl.SSLObject

    @property
    def client_name(self) -> str:
        """The common name in the certificate that the client showed; empty without one."""
        return _common_name(self.server.getpeercert())

    @property
    def server_name(self) -> str:
        """The common name in the certificate that the server showed."""
        return _common_name(self.client.getpeercert())


def shake_hands(
    client: ssl.SSLContext, server: ssl.SSLContext, host: str | None = "localhost"
) -> Handshake:
    """Do a handshake. Raises SSLError as the side that refuses the other raises it."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname=host)
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    done: set[ssl.SSLObject] = set()
    for _ in range(10):
        for side in (client_side, server_side):
            try:
                side.do_handshake()
                done.add(side)
            except ssl.SSLWantReadError:
                continue
    assert len(done) == 2
    return Handshake(client_side, server_side)


def _common_name(certificate: object) -> str:
    if not isinstance(certificate, dict):
        return ""
    names = dict(pair for part in certificate.get("subject", ()) for pair in part)
    return str(names.get("commonName", ""))
