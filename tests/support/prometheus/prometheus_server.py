"""A real Prometheus that scrapes a worker and evaluates the rules of `deploy`."""

from __future__ import annotations

import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.support.prometheus.prometheus_program import require_program
from tests.support.prometheus.queries import RULES
from tests.support.rest.rest_client import request_once
from tests.support.waiting import wait_until

START_TIMEOUT_S = 60.0


class PrometheusServer:
    """A running server."""

    def __init__(self, address: str) -> None:
        self.address = address

    def query(self, text: str) -> list[dict[str, Any]]:
        """Evaluate a query now; return the samples. Fails if it is no query."""
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": text})
        answer = request_once(self.address, "GET", path)
        assert answer.status == 200, f"{text}: {answer.content.decode()}"
        data = answer.json["data"]
        return [data] if data["resultType"] == "scalar" else list(data["result"])

    def get(self, path: str) -> Any:
        """Return the data of a request to its API."""
        answer = request_once(self.address, "GET", path)
        assert answer.status == 200, answer.content.decode()
        return answer.json["data"]


@contextmanager
def running_prometheus(
    job: Mapping[str, Any], directory: Path, port: int
) -> Iterator[PrometheusServer]:
    """Run a server with one scrape job and all rules, each once a second."""
    program = require_program("prometheus")
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in RULES],
        "scrape_configs": [dict(job)],
    }
    file = directory / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            _command(program, file, directory, port),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=directory,
        )
    server = PrometheusServer(f"http://127.0.0.1:{port}")
    try:
        wait_until(lambda: _is_ready(server, process), "Prometheus to start", START_TIMEOUT_S)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(program: str, file: Path, directory: Path, port: int) -> Sequence[str]:
    return [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]


def _is_ready(server: PrometheusServer, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "Prometheus has ended: see prometheus.log"
    try:
        return request_once(server.address, "GET", "/-/ready").status == 200
    except OSError:
        return False
