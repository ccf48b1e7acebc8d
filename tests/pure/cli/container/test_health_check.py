"""The health check of the image finds the REST API of its container and asks it."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sparkmirror.cli.container.health_check import (
    HealthAddress,
    check,
    health_address,
)
from tests.support.reserved_port import reserved_port

ENV_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}


@pytest.mark.parametrize(
    ("properties", "address"),
    [
        ({}, ("http", "127.0.0.1", 8083)),
        ({"rest.port": "28082"}, ("http", "127.0.0.1", 28082)),
        ({"listeners": "http://:8090"}, ("http", "127.0.0.1", 8090)),
        ({"listeners": "HTTPS://0.0.0.0:8443, http://10.0.0.1:8083"}, ("http", "10.0.0.1", 8083)),
        ({"listeners": "https://[::]:8443"}, ("https", "127.0.0.1", 8443)),
        ({"listeners": "http://${env:POD_IP}:${env:PORT}"}, ("http", "10.0.0.5", 8090)),
        ({"rest.port": "${env:PORT}"}, ("http", "127.0.0.1", 8090)),
    ],
)
def test_address_is_that_of_the_file(
    properties: dict[str, str], address: tuple[str, str, int]
) -> None:
    environment = {"POD_IP": "10.0.0.5", "PORT": "8090"}
    assert health_address(ENV_PROVIDER | properties, environment) == HealthAddress(*address)


def test_placeholder_that_cannot_be_replaced_is_a_problem(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worker.properties"
    lines = ENV_PROVIDER | {"listeners": "http://:${env:NO_SUCH_VARIABLE}"}
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()), "ascii")
    assert check([str(file)]) == 1
    assert "NO_SUCH_VARIABLE" in capsys.readouterr().out


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server whose `/health` has a status. Yields its port."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/health" else 404)
            self.end_headers()
            self.wfile.write(b'{"status":"starting"}')

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("status", "code"), [(200, 0), (401, 0), (503, 1), (500, 1)])
def test_status_of_health_is_the_exit_code(
    status: int, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worker.properties"
    with answering(status) as port:
        file.write_text(f"rest.port={port}\n", "ascii")
        assert check([str(file)]) == code
    assert ("starting" in capsys.readouterr().out) == bool(code)


@pytest.mark.parametrize("line", ["rest.port={}", "listeners=https://127.0.0.1:{}"])
def test_a_worker_that_does_not_listen_is_unhealthy(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "worker.properties"
    with reserved_port() as port:
        file.write_text(line.format(port) + "\n", "ascii")
        assert check([str(file)]) == 1
    assert "does not answer" in capsys.readouterr().out


def test_https_listener_is_connected_to(tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    with answering(500) as port:
        file.write_text(f"listeners=https://127.0.0.1:{port}\n", "ascii")
        assert check([str(file)]) == 0
