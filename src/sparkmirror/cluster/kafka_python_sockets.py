"""Sockets the client library opens, closed when they come to nothing.

The library drops the socket of a failed connection without closing it; during an outage they pile
up until Python happens to look. Its seam for proxies lets us bring a socket maker of our own.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from typing import Any

from kafka.net.inet import KafkaNetSocket

PROXY_URL = "sparkmirror-direct://"
"""What to give the library as `proxy_url`: no proxy, our sockets."""

_LibrarySocket: Any = KafkaNetSocket
_SocketOption = tuple[int, int, int]


class DirectSocketFactory:
    """Connects directly, as the library does without a proxy, and closes what does not connect."""

    SCHEMES = ("sparkmirror-direct",)

    def dns_lookup(self, host: str, port: int) -> Any:
        """Return the addresses of a host, as the library finds them."""
        return _LibrarySocket().dns_lookup(host, port)

    async def connect(
        self,
        net: Any,
        address: Any,
        options: Iterable[_SocketOption] = (),
        timeout_at: float | None = None,
    ) -> socket.socket:
        """Return a connected socket; one that does not connect is closed."""
        family, kind, protocol, _, where = address
        made = socket.socket(family, kind, protocol)
        try:
            made.setblocking(False)
            for option in options:
                made.setsockopt(*option)
            await _LibrarySocket().sock_connect(net, made, where, timeout_at=timeout_at)
        except BaseException:
            made.close()
            raise
        return made


_LibrarySocket.register_class(DirectSocketFactory)
