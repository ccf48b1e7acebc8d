"""Forks Spark's Python processes from one that has imported what they need.

    driver ── fork ──▶ server ── fork ──▶ daemon of the slots, streaming source, planners
    JVM ── python (a script) ──▶ client ── its arguments, environment, files ──▶ server

Spark starts six Python processes before it runs the first slot, and each would import pyspark and
this package for itself: seconds of processor time, and memory that is shared now. The server
has one thread and no secret: the driver forks it before it reads its spec. A forked process ends
when its client is killed, and the server ends with the driver. On this computer only: executors of
a Spark cluster start Python themselves.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import runpy
import selectors
import shlex
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import NamedTuple, NoReturn

from sparkmirror.engine.spark import fork_client
from sparkmirror.engine.spark.command_line import show_command_line

PRELOADED_MODULES = (
    "pyspark.worker",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "sparkmirror.engine.spark.spark_task",
)
"""None of them starts a thread; pyarrow, which others import, does."""
REQUEST_TIMEOUT_S = 10.0
MAX_PATH_BYTES = 100
"""The system limits the path of a socket."""
_BACKLOG = 16


class ProcessRequest(NamedTuple):
    """A process to fork: what `python -m` would get."""

    directory: str
    arguments: list[str]
    environ: dict[str, str]


def decode_request(data: bytes) -> ProcessRequest:
    """Return the request that a client has encoded."""
    directory, count, *words = map(os.fsdecode, data.split(b"\0"))
    arguments, variables = words[: int(count)], words[int(count) :]
    environ = dict(variable.split("=", 1) for variable in variables)
    return ProcessRequest(directory, arguments, environ)


def start_fork_server(directory: Path, modules: Collection[str] = PRELOADED_MODULES) -> Path | None:
    """Import these modules and fork a server; returns what Spark is to start instead of Python.

    None if this is not possible: not Linux, a system call is not allowed, the directory has no
    sockets or executable files, or other threads run already.
    """
    path = directory / "fork-server"
    if not hasattr(os, "pidfd_open") or len(os.fsencode(path)) > MAX_PATH_BYTES:
        return None
    for module in modules:
        importlib.import_module(module)
    try:
        os.close(os.pidfd_open(os.getpid()))
        if len(list(Path("/proc/self/task").iterdir())) > 1:  # threads, also those of libraries
            return None
        script = _write_script(directory / "python", path)
        if script is not None:
            _fork_server(path)
    except OSError:
        traceback.print_exc()
        return None
    return script


def _fork_server(path: Path) -> None:
    """Fork a server that listens at this path. Raises OSError."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(_BACKLOG)
        driver_end, server_end = os.pipe()
        gc.freeze()
        if os.fork() == 0:
            os.close(server_end)
            _serve(listener, driver_end)
        os.close(driver_end)  # the other end stays open until this process ends


def _write_script(script: Path, server: Path) -> Path | None:
    """Write an executable file that runs the client; None if it cannot be executed here."""
    client = [sys.executable, "-IS", fork_client.__file__, str(server), sys.executable]
    script.write_text(f'#!/bin/sh\nexec {shlex.join(client)} "$@"\n', "utf-8")
    script.chmod(0o700)
    return script if os.access(script, os.X_OK) else None


def _serve(listener: socket.socket, driver_end: int) -> NoReturn:
    """Run the server until the driver has ended. Runs forked processes, too."""
    code, forked = 1, None
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1):  # those of the driver belong to its supervisor
            os.dup2(nothing, number)
        os.close(nothing)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        show_command_line(["python", "-m", __name__])
        ForkServer(listener, driver_end).run()
        code = 0
    except ForkedProcess as process:
        forked = process
    except Exception:  # noqa: BLE001 - what Python does at its end
        traceback.print_exc()
    if forked:
        code = forked.run()
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


class ForkedProcess(BaseException):
    """Raised in a forked process: it leaves the code of the server and runs its request."""

    def __init__(self, request: ProcessRequest, files: list[int]) -> None:
        super().__init__()
        self._request = request
        self._files = files

    def run(self) -> int:
        """Run the module of the request; returns the exit code."""
        request = self._request
        for number, file in enumerate(self._files):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(request.environ)
        os.chdir(request.directory)
        module, *arguments = request.arguments
        show_command_line(["python", fork_client.MODULE_OPTION, module, *arguments])
        sys.argv = [module, *arguments]
        for entry in reversed(request.environ.get("PYTHONPATH", "").split(os.pathsep)):
            if entry and entry not in sys.path:
                sys.path.insert(0, entry)
        try:
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        except SystemExit as end:
            return end.code & 0xFF if isinstance(end.code, int) else int(end.code is not None)
        except Exception:  # noqa: BLE001 - as above
            traceback.print_exc()
            return 1
        return 0


class ForkServer:
    """Forks a process for each client and tells the client its exit code."""

    def __init__(self, listener: socket.socket, driver_end: int) -> None:
        """`driver_end` is at its end when the driver has ended."""
        self._listener = listener
        self._driver_end = driver_end
        self._selector = selectors.DefaultSelector()
        self._clients: dict[int, socket.socket] = {}
        """By the id of the forked process, while both live."""

    def run(self) -> None:
        """Serve until the driver has ended. Raises ForkedProcess in each forked process."""
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._selector.register(self._driver_end, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == self._driver_end:
                    return
                action: Callable[[], None] = key.data
                action()

    def _accept(self) -> None:
        """Fork a process for a client. One that cannot be served starts Python itself."""
        try:
            client, _ = self._listener.accept()
        except OSError:
            traceback.print_exc()
            return
        client.settimeout(REQUEST_TIMEOUT_S)
        files: list[int] = []
        try:
            request = _receive(client, files)
            pid = os.fork()
        except (OSError, ValueError, EOFError):
            traceback.print_exc()
            _close_files(files)
            client.close()
            return
        if pid == 0:
            self._close(client)
            raise ForkedProcess(request, files)
        _close_files(files)
        process = os.pidfd_open(pid)
        self._clients[pid] = client
        self._selector.register(client, selectors.EVENT_READ, partial(self._on_client_gone, pid))
        self._selector.register(
            process, selectors.EVENT_READ, partial(self._on_process_end, pid, process)
        )

    def _on_client_gone(self, pid: int) -> None:
        if pid not in self._clients:
            return  # the process has ended in the same turn
        self._forget_client(pid)
        os.kill(pid, signal.SIGTERM)  # it is not waited for yet, so it has the id

    def _on_process_end(self, pid: int, process: int) -> None:
        self._selector.unregister(process)
        os.close(process)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if pid in self._clients:
            with contextlib.suppress(OSError):
                self._clients[pid].sendall(bytes([code & 0xFF]))
            self._forget_client(pid)

    def _forget_client(self, pid: int) -> None:
        client = self._clients.pop(pid)
        self._selector.unregister(client)
        client.close()

    def _close(self, client: socket.socket) -> None:
        """Close everything of the server in a forked process."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
            else:
                os.close(key.fd)
        self._selector.close()
        client.close()


def _close_files(files: list[int]) -> None:
    for file in files:
        os.close(file)


def _receive(client: socket.socket, files: list[int]) -> ProcessRequest:
    """Return a request; append its standard files. Raises OSError, ValueError, EOFError."""
    count = len(fork_client.STANDARD_FILES)
    length, received, _, _ = socket.recv_fds(client, fork_client.LENGTH_BYTES, count)
    files += received
    if len(length) < fork_client.LENGTH_BYTES or len(files) != count:
        raise EOFError("a client of the fork server has sent no request")
    left = int.from_bytes(length, "big")
    chunks: list[bytes] = []
    while left:
        chunk = client.recv(left)
        if not chunk:
            raise EOFError("a client of the fork server has ended")
        chunks.append(chunk)
        left -= len(chunk)
    return decode_request(b"".join(chunks))
