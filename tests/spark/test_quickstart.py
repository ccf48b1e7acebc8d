"""The quickstart, typed line by line on fresh clusters, ends where it says and doubles nothing.

Only the two REST ports differ from the page, and how long consumers wait for more records. A line
that ends with `# 1000` must print 1000.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.lab.processes.port_registry import PortRegistry
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.cli.mirror_process import SPARK_TIMEOUT_S, MirrorProcess, connector_path
from tests.support.cli.page_commands import program_directory, shell_blocks
from tests.support.rest.json_requests import get_json
from tests.support.waiting import wait_until

PAGE = "quickstart.md"
PAGE_PORTS = ("8083", "8084")
PAGE_TIMEOUT, TIMEOUT_OPTION, FIRST_TIMEOUT_MS = "--timeout-ms 9000", "--timeout-ms", 3000
TIMEOUT = f"{TIMEOUT_OPTION} {FIRST_TIMEOUT_MS}"
"""A consumer that ended too early is started again, so it need not wait for a busy computer."""
PROCESS_S = 2.0
"""Between two tries of a command: its Python starts for as long."""
COMMENT = re.compile(r" +# .*")
EXPECTED_COUNT = re.compile(r"wc -l +# (\d+)$")
HEREDOC_END = "END"
MIRRORED_PARTITIONS = {"orders": 3, "payments": 1}
SYNCED = re.compile("written to the group on the target|the group on the target has already got")


def page_commands() -> Iterator[str]:
    """The commands of the page, in order. A command may have several lines."""
    for block in shell_blocks(PAGE):
        lines: list[str] = []
        for line in block.splitlines():
            lines.append(line)
            command = "\n".join(lines)
            in_heredoc = f"<<{HEREDOC_END}" in command and line != HEREDOC_END
            if not in_heredoc and COMMENT.sub("", command).count("'") % 2 == 0:
                yield command
                lines = []
        assert not lines, f"a command of the page has no end: {lines}"


class Typist:
    """Types the commands of the page: programs into one terminal, all others into a second one."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._program: MirrorProcess | None = None
        first, second = PortRegistry().claim(2, directory)
        self._ports = dict(zip(PAGE_PORTS, (first, second), strict=True))
        self._url = f"http://127.0.0.1:{first}"
        self.environ = {
            **os.environ,
            "PATH": f"{program_directory(directory)}:{os.environ['PATH']}",
            "SPARKMIRROR_LABS": str(directory / "labs"),
            "COLUMNS": "250",
        }

    def type(self, written: str) -> None:
        """Type one command and check what the page says about it."""
        command = self._with_own_ports(written)
        if command.startswith("export "):
            self._export(command)
        elif command.startswith(("sparkmirror run", "sparkmirror worker")):
            self.press_ctrl_c()
            (self._directory / "log").unlink(missing_ok=True)
            self._program = MirrorProcess(
                ["bash", "-c", f"exec {command}"], self._directory, self.environ
            )
            assert self._program.address.rstrip("/") in (self._url, self._second_url)
            self._url = self._program.address.rstrip("/")
        elif "status --watch" in command:
            self._watch(command)
            wait_until(self._has_caught_up, "the mirror to catch up", SPARK_TIMEOUT_S)
        elif command.startswith("sparkmirror status"):
            wait_until(
                lambda: self._run(command)[0] == 0, "status to be 0", SPARK_TIMEOUT_S, PROCESS_S
            )
        elif command.startswith("sparkmirror groups explain"):
            wait_until(
                lambda: self._is_group_synced(command.split()[3]) and self._run(command)[0] == 0,
                "the offsets of the group",
                SPARK_TIMEOUT_S,
            )
        elif found := EXPECTED_COUNT.search(command):
            self._count(command, int(found[1]))
        else:
            if command.startswith("sparkmirror lab down"):
                self.press_ctrl_c()
            code, output = self._run(command)
            assert code == 0, f"{written} ends with {code}: {output}"

    def press_ctrl_c(self) -> None:
        """End the program in the first terminal."""
        if self._program is not None:
            self._program.send_signal(signal.SIGINT)
            assert self._program.wait_for_exit(SPARK_TIMEOUT_S) == 0, self._program.output[-3000:]
            self._program = None

    def close(self) -> None:
        """End what a failed test has left."""
        if self._program is not None:
            self._program.close()

    @property
    def _second_url(self) -> str:
        return f"http://127.0.0.1:{self._ports[PAGE_PORTS[1]]}"

    def _with_own_ports(self, written: str) -> str:
        """The command with free ports in place of those of the page, and with TIMEOUT."""
        text = written.replace(PAGE_TIMEOUT, TIMEOUT)
        for page_port, port in self._ports.items():
            text = text.replace(page_port, str(port))
        if text.startswith("cat > mm2.properties"):
            listeners = f"listeners = http://127.0.0.1:{self._ports[PAGE_PORTS[0]]}"
            text = text.removesuffix(HEREDOC_END) + f"{listeners}\n{HEREDOC_END}"
        asks_worker = text.startswith(("sparkmirror status", "sparkmirror groups"))
        if asks_worker and "--url" not in text:
            words, _, comment = text.partition("#")
            text = f"{words} --url {self._url} #{comment}"
        return text

    def _export(self, command: str) -> None:
        name = command.split()[1].partition("=")[0]
        code, value = self._run(f"{command}\nprintenv {name}")
        assert code == 0, value
        self.environ[name] = value.strip()

    def _count(self, command: str, expected: int) -> None:
        """Count what a consumer reads. One with a group goes on where it ended before.

        A consumer that a busy computer starts too slowly reads less: the next one waits longer.
        """
        counted, timeout_ms = 0, FIRST_TIMEOUT_MS

        def is_complete() -> bool:
            nonlocal counted, timeout_ms
            output = self._run(command.replace(TIMEOUT, f"{TIMEOUT_OPTION} {timeout_ms}"))[1]
            timeout_ms *= 2
            number = int(output.split()[-1])
            counted = counted + number if "--group" in command else number
            assert counted <= expected, f"{counted} records instead of {expected}: {command}"
            return counted == expected

        wait_until(is_complete, f"{expected} records: {command}", SPARK_TIMEOUT_S)

    def _is_group_synced(self, group: str) -> bool:
        written = [
            one["written"]
            for name in get_json(self._url, "/connectors")
            for one in get_json(self._url, f"{connector_path(name)}/groups?group={group}")["groups"]
            if one["upstream"]
        ]
        return bool(written) and all(map(SYNCED.match, written))

    def _has_caught_up(self) -> bool:
        partitions = [
            one
            for name in get_json(self._url, "/connectors")
            for one in get_json(self._url, f"{connector_path(name)}/partitions")["partitions"]
            if one["topic"] in MIRRORED_PARTITIONS
        ]
        return len(partitions) == sum(MIRRORED_PARTITIONS.values()) and all(
            one["end"] is not None and 0 <= one["end"] == one["position"] for one in partitions
        )

    def _watch(self, command: str) -> None:
        """Press Ctrl-C when the view is there: a Python that still starts may lose a signal."""
        with subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            cwd=self._directory,
            env=self.environ,
        ) as watching:
            assert watching.stdout is not None
            assert watching.stdout.readline(), f"{command} shows nothing"
            watching.send_signal(signal.SIGINT)
            assert watching.wait(SPARK_TIMEOUT_S) == 0

    def _run(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
            cwd=self._directory,
            env=self.environ,
            check=False,
        )
        return done.returncode, done.stdout


@pytest.fixture
def typist(tmp_path: Path, reaper: ProcessReaper) -> Iterator[Typist]:
    typist = Typist(tmp_path)
    yield typist
    typist.close()


def test_the_quickstart_typed_line_by_line_ends_where_it_says_and_doubles_nothing(
    typist: Typist, reaper: ProcessReaper
) -> None:
    typed = list(page_commands())
    assert len(typed) > 20
    requests = [command for command in typed if command.startswith("curl")]
    assert requests
    assert all(one.startswith("curl -f") for one in requests), "curl ends with 0 on an HTTP error"
    for command in typed:
        typist.type(command)
        if command.startswith("sparkmirror lab up"):
            _register_brokers(typist, reaper)


def _register_brokers(typist: Typist, reaper: ProcessReaper) -> None:
    """Let the reaper end the brokers if the test does not."""
    printed = subprocess.run(
        ["sparkmirror", "lab", "status", "--format", "json"],
        capture_output=True,
        text=True,
        env=typist.environ,
        check=True,
    ).stdout
    for cluster in json.loads(printed)["clusters"]:
        for broker in cluster["brokers"]:
            reaper.register(broker["pid"])
