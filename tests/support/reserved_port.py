"""A port that no other test gets and on which nothing listens."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port of 127.0.0.1 that refuses connections until the test itself listens on it.

    A port that is only looked for, and free again, may be another process's a moment later. This
    one is bound and does not listen: no process that asks for any free port gets it.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server may listen on it too
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
