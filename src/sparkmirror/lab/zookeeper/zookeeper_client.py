"""A client of ZooKeeper that creates nodes and looks for them: all that the lab needs.

    with ZooKeeperClient(Address("127.0.0.1", 2181)) as client:
        client.create("/cluster", b"")
        client.exists("/brokers/ids/1")

Numbers are big-endian. Text and bytes have their length in front, a request and a response too.
Nodes are open to every client, as those are that brokers create without authentication.
"""

from __future__ import annotations

import socket
import struct
from typing import Self

from sparkmirror.errors import LabError
from sparkmirror.wire.net.address import Address

_TIMEOUT_S = 5.0
_SESSION_TIMEOUT_MS = 10_000
_CREATE, _EXISTS, _CLOSE_SESSION = 1, 3, -11
_OK, _NO_NODE, _NODE_EXISTS = 0, -101, -110
_ALL_PERMISSIONS = 31
_PERSISTENT = 0
_NO_PASSWORD = bytes(16)
_LENGTH = struct.Struct(">i")
_CONNECT_REQUEST = struct.Struct(">iqiq")
_REQUEST_HEADER = struct.Struct(">ii")
_RESPONSE_HEADER = struct.Struct(">iqi")


class ZooKeeperClient:
    """One session. Every method blocks, and raises OSError if the server does not answer."""

    def __init__(self, address: Address, timeout_s: float = _TIMEOUT_S) -> None:
        self._socket = socket.create_connection((address.host, address.port), timeout_s)
        self._requests = 0
        try:
            request = _CONNECT_REQUEST.pack(0, 0, _SESSION_TIMEOUT_MS, 0)
            self._send(request + _with_length(_NO_PASSWORD))
            self._receive()
        except BaseException:
            self._socket.close()
            raise

    def create(self, path: str, data: bytes) -> bool:
        """Create a node whose parent exists; return False if the node exists already."""
        access = struct.pack(">ii", 1, _ALL_PERMISSIONS) + _text("world") + _text("anyone")
        flags = struct.pack(">i", _PERSISTENT)
        code = self._call(_CREATE, _text(path) + _with_length(data) + access + flags)
        if code not in (_OK, _NODE_EXISTS):
            raise LabError(f"ZooKeeper did not create {path}: error {code}.")
        return code == _OK

    def exists(self, path: str) -> bool:
        """Return whether there is a node."""
        without_watch = b"\0"
        code = self._call(_EXISTS, _text(path) + without_watch)
        if code not in (_OK, _NO_NODE):
            raise LabError(f"ZooKeeper did not look for {path}: error {code}.")
        return code == _OK

    def close(self) -> None:
        """End the session."""
        try:
            self._call(_CLOSE_SESSION, b"")
        except OSError:
            pass  # the server ends the session by itself, later
        finally:
            self._socket.close()

    def _call(self, operation: int, body: bytes) -> int:
        """Send a request and return the error code of its response."""
        self._requests += 1
        self._send(_REQUEST_HEADER.pack(self._requests, operation) + body)
        _, _, code = _RESPONSE_HEADER.unpack_from(self._receive())
        return int(code)

    def _send(self, request: bytes) -> None:
        self._socket.sendall(_with_length(request))

    def _receive(self) -> bytes:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            chunk = self._socket.recv(size - len(data))
            if not chunk:
                raise ConnectionError("ZooKeeper closed the connection")
            data += chunk
        return data

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _with_length(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _text(text: str) -> bytes:
    return _with_length(text.encode())
