"""What Spark starts instead of Python: has the fork server start the module, and waits for it.

    python -IS fork_client.py SOCKET PYTHON -m MODULE [ARGUMENT...]

Without a fork server it becomes PYTHON itself. Imports nothing but a few modules of the standard
library: its start is the cost of every process that Spark starts.
"""

from __future__ import annotations

import os
import socket
import sys

MODULE_OPTION = "-m"
LENGTH_BYTES = 4
STANDARD_FILES = (0, 1, 2)


def encode_request(arguments: list[str], directory: str, environ: dict[bytes, bytes]) -> bytes:
    """Return the request of a process: its directory, its arguments and its environment."""
    variables = (name + b"=" + value for name, value in environ.items())
    words = [directory, str(len(arguments)), *arguments]
    return b"\0".join([*map(os.fsencode, words), *variables])


def main() -> int:
    """Return the exit code of the process that the server has forked."""
    path, python, *arguments = sys.argv[1:]
    connection = socket.socket(socket.AF_UNIX)
    try:
        if arguments[:1] != [MODULE_OPTION]:
            raise ValueError(arguments)
        connection.connect(path)
        directory = os.getcwd()  # noqa: PTH109 - pathlib is slow to import
        request = encode_request(arguments[1:], directory, dict(os.environb))
        length = len(request).to_bytes(LENGTH_BYTES, "big")
        socket.send_fds(connection, [length], list(STANDARD_FILES))
        connection.sendall(request)
    except (OSError, ValueError):
        os.execv(python, [python, *arguments])  # noqa: S606 - Spark's own arguments
    # Spark waits for the end of these files. The forked process has them now.
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in STANDARD_FILES:
        os.dup2(nothing, number)
    # No code at the end of the file means that the server has ended.
    return (connection.recv(1) or b"\1")[0]


if __name__ == "__main__":
    sys.exit(main())
