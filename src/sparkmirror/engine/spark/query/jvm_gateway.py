"""A connection from a slot to Spark's JVM on the same computer.

py4j's own protocol over the loopback interface, with the secret that Spark has made for it.
"""

from __future__ import annotations

import threading
from typing import Any

from py4j import clientserver

py4j: Any = clientserver
"""py4j has no types."""
_lock = threading.Lock()
_gateways: dict[tuple[int, str], Any] = {}


def open_gateway(port: int, secret: str) -> Any:
    """Return the gateway of this process to a JVM. Each thread has a connection of its own."""
    with _lock:
        if (port, secret) not in _gateways:
            _gateways.clear()  # there is one JVM: the driver's, or that of this process
            java = py4j.JavaParameters(port=port, auth_token=secret, auto_convert=True)
            python = py4j.PythonParameters(port=0, eager_load=False)
            _gateways[port, secret] = py4j.ClientServer(
                java_parameters=java, python_parameters=python
            )
        return _gateways[port, secret]
