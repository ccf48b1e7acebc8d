"""A JVM with Spark's gateway for Python that the driver has started itself (`jvm_command`)."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sparkmirror.errors import DriverLost

ADDRESS_VARIABLE = "_PYSPARK_DRIVER_CONN_INFO_PATH"
"""Names the file to which the gateway writes its port and its secret."""
SUBMIT_VARIABLES = {"SPARK_CONNECT_MODE": "0", "PYTHONHASHSEED": "0"}
"""What pyspark and `spark-submit` set for the JVM and its Python processes."""
_INTEGER = struct.Struct(">i")
_POLL_S = 0.01


class GatewayAddress(NamedTuple):
    """Where the gateway listens on this computer, and the secret that a client must know."""

    port: int
    secret: str


class GatewayProcess:
    """The JVM. It ends when its standard input does, so it cannot outlive the driver."""

    def __init__(
        self, command: Sequence[str], directory: Path, environ: Mapping[str, str] | None = None
    ) -> None:
        """Start it; returns at once. Only this JVM uses the file `gateway` of the directory."""
        self._file = directory / "gateway"
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env={
                **(os.environ if environ is None else environ),
                **SUBMIT_VARIABLES,
                ADDRESS_VARIABLE: str(self._file),
            },
        )

    def await_address(self) -> GatewayAddress:
        """Wait until the gateway listens. Raises DriverLost if the JVM ends before."""
        while True:
            with contextlib.suppress(FileNotFoundError):
                address = read_address(self._file.read_bytes())
                self._file.unlink()  # it has the secret
                return address
            if (code := self.process.poll()) is not None:
                raise DriverLost(f"its JVM ended with code {code}")
            time.sleep(_POLL_S)


def read_address(data: bytes) -> GatewayAddress:
    """Read what the gateway wrote: its port, then the length of its secret and the secret."""
    [port] = _INTEGER.unpack_from(data)
    [length] = _INTEGER.unpack_from(data, _INTEGER.size)
    begin = 2 * _INTEGER.size
    return GatewayAddress(port, data[begin : begin + length].decode())
