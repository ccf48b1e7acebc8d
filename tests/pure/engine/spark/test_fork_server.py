"""The fork server: what it forks behaves as a Python of its own would."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.engine.spark import fork_client
from sparkmirror.engine.spark.fork_server import ForkServer, decode_request
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="Linux only")

DRIVER = """
import sys
from pathlib import Path
from sparkmirror.engine.spark.fork_server import start_fork_server
print(start_fork_server(Path(sys.argv[1]), ["json"]), flush=True)
sys.stdin.read()
"""
FORKED = """
import json, os, signal, sys
if sys.argv[1:] == ["wait"]:
    print("waits", flush=True)
    signal.pause()
command = open("/proc/self/cmdline").read().split("\\0")
print(json.dumps([sys.argv[1:], os.getcwd(), os.environ["A"], __name__, command[:4]]))
print(sys.stdin.read(), file=sys.stderr, end="")
sys.exit(7)
"""


class FakeDriver:
    """A process that has forked a server, and ends with its standard input."""

    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.python = self.process.stdout.readline().decode().strip()
        self.environ = {**os.environ, "PYTHONPATH": str(directory), "A": "b=c\nd"}

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self.python, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environ,
            cwd=Path(self.python).parent,
        )

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[FakeDriver]:
    (tmp_path / "forked_module.py").write_text(FORKED, "utf-8")
    made = FakeDriver(tmp_path)
    yield made
    made.end()


def test_a_request_keeps_every_byte_of_arguments_and_environment() -> None:
    environ = {b"A": b"x=y\n\xff", b"B": b""}
    request = decode_request(fork_client.encode_request(["m", "", "ä b"], "/some where", environ))
    assert request.directory == "/some where"
    assert request.arguments == ["m", "", "ä b"]
    assert {os.fsencode(k): os.fsencode(v) for k, v in request.environ.items()} == environ


def test_a_forked_process_has_arguments_directory_environment_files_and_exit_code(
    driver: FakeDriver,
) -> None:
    process = driver.start("-m", "forked_module", "one", "two")
    output, errors = process.communicate(b"from Spark")
    arguments, directory, variable, name, command = json.loads(output)
    assert (arguments, variable, name) == (["one", "two"], driver.environ["A"], "__main__")
    assert Path(directory) == Path(driver.python).parent
    assert command == ["python", "-m", "forked_module", "one"], "what ps shows"
    assert (errors, process.returncode) == (b"from Spark", 7)


def test_an_error_is_printed_and_ends_only_its_process(driver: FakeDriver) -> None:
    process = driver.start("-m", "no_such_module")
    assert b"no_such_module" in process.communicate()[1]
    assert process.returncode == 1
    process = driver.start("-m", "forked_module")
    process.communicate()
    assert process.returncode == 7


def test_a_forked_process_ends_when_its_client_is_killed(driver: FakeDriver) -> None:
    process = driver.start("-m", "forked_module", "wait")
    assert process.stdout is not None
    assert process.stdout.readline() == b"waits\n"
    process.send_signal(signal.SIGKILL)
    output, _ = process.communicate()
    assert output == b"", "both processes have closed the file"


def test_without_the_server_the_client_becomes_python(driver: FakeDriver) -> None:
    driver.end()
    (server,) = (path for path in Path(driver.python).parent.iterdir() if path.is_socket())

    def is_gone() -> bool:
        command = [driver.python, "-c", "import sys; print(sys.flags.isolated)"]
        return subprocess.check_output(command, env=driver.environ) == b"0\n"

    wait_until(is_gone, f"the server at {server} to end")
    process = driver.start("-m", "forked_module")
    process.communicate()
    assert process.returncode == 7


def test_a_client_that_is_gone_with_its_process_does_not_end_the_server() -> None:
    with socket.socket() as listener:
        ForkServer(listener, -1)._on_client_gone(os.getpid())


def test_a_client_that_sends_no_request_does_not_end_the_server(driver: FakeDriver) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(Path(driver.python).with_name("fork-server")))
        client.send(b"12345678")
    process = driver.start("-m", "forked_module")
    process.communicate(b"")
    assert process.returncode == 7


def test_a_directory_without_sockets_means_no_server(tmp_path: Path) -> None:
    made = FakeDriver(tmp_path / "absent")
    assert made.python == "None"
    made.end()
