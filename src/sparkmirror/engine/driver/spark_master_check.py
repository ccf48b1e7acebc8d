"""Whether the masters of a standalone Spark cluster accept connections, and what to say if not.

Spark itself waits a minute for a master that does not answer, and then only reports that its
context is stopped. So the driver connects to the master first, before it starts Spark. Masters of
other kinds (local, YARN, Kubernetes) are not checked.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable

CONNECT_TIMEOUT_S = 3.0
CHECK_MASTER = "check spark.master, and whether the master runs"

_STANDALONE = re.compile(r"spark://(?P<addresses>[^/]+)")
_STOPPED_CONTEXT = "stopped SparkContext"


def standalone_addresses(master: str) -> list[tuple[str, int]]:
    """Return the addresses in `spark://host:port,host:port`; none for a master of another kind."""
    standalone = _STANDALONE.fullmatch(master)
    if standalone is None:
        return []
    addresses = []
    for address in standalone["addresses"].split(","):
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():
            addresses.append((host.strip("[]"), int(port)))
    return addresses


def master_problem(
    master: str, connect_error: Callable[[tuple[str, int]], str] | None = None
) -> str:
    """Say that no master accepts a connection; empty if one does. Blocks for some seconds."""
    addresses = standalone_addresses(master)
    errors = [(connect_error or _connect_error)(address) for address in addresses]
    if not errors or "" in errors:
        return ""
    return f"Spark master {master} does not answer: {'; '.join(errors)}; {CHECK_MASTER}"


def slow_start_problem(master: str, waited_s: float, log: str) -> str:
    """Say that Spark has not started for so long on a master that accepts connections."""
    return (
        f"Spark has not started within {waited_s:.0f} s: Spark master {master} has not accepted the"
        f" application; {CHECK_MASTER}; see {log}"
    )


def start_failure(master: str, cause: str, log: str) -> str:
    """Say that Spark did not start on a master that is not local."""
    if _STOPPED_CONTEXT in cause:
        cause = "Spark gave up waiting until the master accepts the application"
    return f"Spark did not start on Spark master {master}: {cause}; {CHECK_MASTER}; see {log}"


def _connect_error(address: tuple[str, int]) -> str:
    """Return why an address accepts no connection; empty if it does."""
    try:
        socket.create_connection(address, timeout=CONNECT_TIMEOUT_S).close()
    except TimeoutError:
        return f"no answer within {CONNECT_TIMEOUT_S:.0f} s"
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""
