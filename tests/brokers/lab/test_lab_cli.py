"""`sparkmirror lab` as a process, with a lab of two clusters."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.lab.lab_store import LabRecord, LabStore
from sparkmirror.lab.processes.process_identity import ProcessIdentity
from sparkmirror.lab.processes.process_reaper import ProcessReaper
from tests.support.cli.command_line import CommandLine, CommandResult
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def labs(lab_directory: Path) -> Path:
    return lab_directory / "labs"


@pytest.fixture(scope="module")
def sparkmirror(labs: Path) -> CommandLine:
    return CommandLine({"SPARKMIRROR_LABS": str(labs), "COLUMNS": "200"})


def _brokers(sparkmirror: CommandLine) -> dict[str, dict[str, Any]]:
    """The status of the broker of each cluster, by name of the cluster."""
    output = json.loads(sparkmirror.run("lab", "status", "--format", "json").stdout)
    return {cluster["name"]: cluster["brokers"][0] for cluster in output["clusters"]}


@pytest.fixture(scope="module")
def started(sparkmirror: CommandLine, reaper: ProcessReaper, labs: Path) -> Iterator[CommandResult]:
    """Start a secured lab for all tests of this module; stop it and check that nothing is left."""
    options = ("--listener", "SASL_SSL", "--authorizer", "--topic", "orders:2", "--user", "bob:pw")
    # A killed broker cannot restart before its session ends: nine seconds by default.
    short_session = ("broker.session.timeout.ms=5000", "broker.heartbeat.interval.ms=500")
    properties = [word for value in short_session for word in ("--property", value)]
    result = sparkmirror.run("lab", "up", "--clusters", "west,east", *options, *properties)
    brokers = _brokers(sparkmirror)
    for broker in brokers.values():
        reaper.register(broker["pid"])
    yield result
    last = {broker["pid"] for broker in _brokers(sparkmirror).values()}
    assert sparkmirror.run("lab", "down").stdout == "Lab 'default' is down: west, east.\n"
    assert not [pid for pid in last if pid and ProcessIdentity.of(pid)]
    assert not (labs / "default").exists()


def test_up_prints_listeners_client_settings_and_a_command_to_try(started: CommandResult) -> None:
    assert started.exit_code == 0, started.stderr
    assert "east: SASL_SSL at 127.0.0.1:" in started.stdout
    assert "west: client settings in " in started.stdout
    assert "sparkmirror lab exec kafka-console-producer --topic orders\n" in started.stdout
    assert "west: waiting for west/1 on SASL_SSL" in started.stderr


def test_address_prints_the_bootstrap_servers_of_a_cluster_and_nothing_else(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    printed = sparkmirror.run("lab", "address", "east").stdout
    assert f"east: SASL_SSL at {printed}" in started.stdout
    refused = sparkmirror.run("lab", "address", "east", "--listener", "ssl")
    assert refused.exit_code == 1
    assert "east has no listener SSL: choose one of SASL_SSL" in refused.stderr


def test_status_shows_processes_ports_and_directories(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    brokers = _brokers(sparkmirror)
    assert list(brokers) == ["west", "east"]
    for broker in brokers.values():
        assert broker["state"] == "running"
        assert ProcessIdentity.of(broker["pid"]) is not None
        assert Path(broker["data"]).is_dir()
    table = sparkmirror.run("lab", "status").stdout
    assert str(brokers["east"]["ports"]["SASL_SSL"]) in table


def test_second_up_prints_that_the_lab_is_up_and_changes_nothing(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    before = _brokers(sparkmirror)
    again = sparkmirror.run("lab", "up")
    assert again.exit_code == 0
    assert again.stdout.startswith("Lab 'default' is up already;")
    assert _brokers(sparkmirror) == before


def test_exec_adds_servers_and_credentials(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    assert "orders\n" in sparkmirror.run("lab", "exec", "kafka-topics", "--list").stdout
    on_east = sparkmirror.run("lab", "exec", "--cluster=east", "kafka-topics.sh", "--list")
    assert (on_east.exit_code, "orders" in on_east.stdout) == (0, False)


def test_exec_passes_input_and_output(started: CommandResult, sparkmirror: CommandLine) -> None:
    producer = ("lab", "exec", "kafka-console-producer", "--topic", "orders")
    assert sparkmirror.run(*producer, text="one\n").exit_code == 0
    read = ("kafka-console-consumer", "--topic", "orders", "--from-beginning", "--max-messages=1")
    assert sparkmirror.run("lab", "exec", *read).stdout == "one\n"


def test_exec_returns_the_exit_code_of_the_tool(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    result = sparkmirror.run("lab", "exec", "kafka-topics", "--describe", "--topic", "none")
    assert result.exit_code == 1
    assert "Topic 'none' does not exist as expected" in result.stdout + result.stderr


def test_paused_broker_is_shown_as_paused_until_resumed(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    assert sparkmirror.run("lab", "pause", "east").stdout == "east is paused.\n"
    assert _brokers(sparkmirror)["east"]["state"] == "paused"
    assert sparkmirror.run("lab", "resume", "east", "--broker", "1").stdout == "east/1 runs.\n"
    assert _brokers(sparkmirror)["east"]["state"] == "running"


def test_killed_broker_is_down_until_started_again(
    started: CommandResult, sparkmirror: CommandLine, reaper: ProcessReaper
) -> None:
    before = _brokers(sparkmirror)["east"]["pid"]
    assert sparkmirror.run("lab", "kill", "east", "--broker", "1").stdout == "east/1 is down.\n"
    assert _brokers(sparkmirror)["east"]["state"] == "down"
    for verb in ("pause", "resume"):
        for words in (("east",), ("east", "--broker", "1")):
            refused = sparkmirror.run("lab", verb, *words)
            assert refused.exit_code == 1
            assert "is down: start it first" in refused.stderr
    assert sparkmirror.run("lab", "start", "east").stdout == "east runs.\n"
    after = _brokers(sparkmirror)["east"]["pid"]
    reaper.register(after)
    assert after != before


def test_logs_show_the_last_lines_and_follow(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    shown = sparkmirror.run("lab", "logs", "west", "--lines", "3").stdout
    assert len(shown.splitlines()) == 3
    log = Path(_brokers(sparkmirror)["west"]["log"])
    with sparkmirror.start("lab", "logs", "west", "--lines", "1", "--follow") as following:
        assert following.stdout is not None
        following.stdout.readline()
        with log.open("a", encoding="utf-8") as file:
            file.write("an added line\n")
        wait_until(
            lambda: "added" in str(following.stdout and following.stdout.readline()), "added"
        )
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("logs", "north"), "There is no cluster 'north' in this lab: it has west, east."),
        (("stop", "west", "--broker", "2"), "west has no broker 2: it has 1."),
        (("exec", "kafka-topic"), "Did you mean kafka-topics?"),
        (("up", "--topic", "a:b"), "'a:b' is not of the form [cluster/]topic[:partitions]."),
        (("up", "--brokers", "0"), "0 brokers: choose 1 to 9"),
        (("up", "--lab", "../x"), "'../x' is no name for a lab"),
        (("status", "--lab", ""), "'' is no name for a lab"),
    ],
    ids=["cluster", "broker", "tool", "topic", "brokers", "lab", "empty"],
)
def test_wrong_argument_prints_an_error_and_exits_1(
    started: CommandResult, sparkmirror: CommandLine, arguments: tuple[str, ...], message: str
) -> None:
    result = sparkmirror.run("lab", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_commands_without_a_lab_print_how_to_start_one(sparkmirror: CommandLine) -> None:
    other_lab = ("--lab", "none")
    status = sparkmirror.run("lab", "status", *other_lab)
    assert (status.exit_code, "start one with: sparkmirror lab up --lab none" in status.stdout) == (
        0,
        True,
    )
    assert sparkmirror.run("lab", "down", *other_lab).stdout == "No lab 'none' is up.\n"
    stop = sparkmirror.run("lab", "stop", "primary", *other_lab)
    assert (stop.exit_code, "start one with: sparkmirror lab up --lab none." in stop.stderr) == (
        1,
        True,
    )


def test_lab_of_an_earlier_boot_is_removed(sparkmirror: CommandLine, labs: Path) -> None:
    LabStore(labs).write(LabRecord(name="old", clusters=(), boot_id="long ago"))
    result = sparkmirror.run("lab", "status", "--lab", "old")
    assert "Lab 'old' ended when the computer restarted: files removed." in result.stderr
    assert not (labs / "old").exists()


def test_interrupted_up_leaves_no_process_and_no_files(
    sparkmirror: CommandLine, labs: Path
) -> None:
    (labs / "half" / "primary").mkdir(parents=True)  # of an `up` that a power failure ended
    with sparkmirror.start("lab", "up", "--lab", "half") as starting:
        record = labs / "half" / "primary" / "broker-1" / "process.json"
        wait_until(record.exists, "the first broker has a process", 120)
        process = json.loads(record.read_text(encoding="utf-8"))
        broker = ProcessIdentity(process["pid"], process["began"])
        assert broker.is_running()
        starting.send_signal(signal.SIGINT)
        output, _ = starting.communicate(timeout=90)
    assert (starting.returncode, output.splitlines()[-1]) == (130, "Interrupted.")
    assert not broker.is_running()
    assert not (labs / "half").exists()


def test_jars_prints_that_the_jars_are_complete(sparkmirror: CommandLine) -> None:
    result = sparkmirror.run("lab", "jars")
    assert result.exit_code == 0
    assert result.stdout.startswith("Kafka 4.3.1: ")
    assert "complete in" in result.stdout
