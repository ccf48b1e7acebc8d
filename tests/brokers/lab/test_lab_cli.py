"""`sparkmirror lab` as people use it: a lab that lives on, looked at and poked by name."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparkmirror.lab.lab_store import LabRecord, LabStore
from sparkmirror.lab.processes.process import ProcessIdentity
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
    """Return the status of every broker, by the name of its cluster."""
    said = json.loads(sparkmirror.run("lab", "status", "--format", "json").stdout)
    return {cluster["name"]: cluster["brokers"][0] for cluster in said["clusters"]}


@pytest.fixture(scope="module")
def started(sparkmirror: CommandLine, reaper: ProcessReaper, labs: Path) -> Iterator[CommandResult]:
    """Bring a secured lab up for all tests here; afterwards, take it down and find it gone."""
    options = ("--listener", "SASL_SSL", "--authorizer", "--topic", "orders:2", "--user", "bob:pw")
    # A killed broker may not come back before its session has ended: nine seconds by default.
    soon = ("broker.session.timeout.ms=5000", "broker.heartbeat.interval.ms=500")
    properties = [word for value in soon for word in ("--property", value)]
    answer = sparkmirror.run("lab", "up", "--clusters", "west,east", *options, *properties)
    brokers = _brokers(sparkmirror)
    for broker in brokers.values():
        reaper.register(broker["pid"])
    yield answer
    last = {broker["pid"] for broker in _brokers(sparkmirror).values()}
    assert sparkmirror.run("lab", "down").stdout == "Lab 'default' is down: west, east.\n"
    assert not [pid for pid in last if pid and ProcessIdentity.of(pid)]
    assert not (labs / "default").exists()


def test_up_shows_where_everything_is_and_what_to_try(started: CommandResult) -> None:
    assert started.exit_code == 0, started.stderr
    assert "east: SASL_SSL at 127.0.0.1:" in started.stdout
    assert "west: client settings in " in started.stdout
    assert "sparkmirror lab exec kafka-console-producer --topic orders\n" in started.stdout
    assert "west: waiting for west/1 on SASL_SSL" in started.stderr


def test_status_names_processes_ports_and_directories(
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


def test_up_twice_says_so_and_shows_the_same(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    before = _brokers(sparkmirror)
    again = sparkmirror.run("lab", "up")
    assert again.exit_code == 0
    assert again.stdout.startswith("Lab 'default' is up already;")
    assert _brokers(sparkmirror) == before


def test_tools_are_told_servers_and_credentials(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    assert "orders\n" in sparkmirror.run("lab", "exec", "kafka-topics", "--list").stdout
    there = sparkmirror.run("lab", "exec", "--cluster=east", "kafka-topics.sh", "--list")
    assert (there.exit_code, "orders" in there.stdout) == (0, False)


def test_tools_read_our_input_and_write_our_output(
    started: CommandResult, sparkmirror: CommandLine
) -> None:
    producer = ("lab", "exec", "kafka-console-producer", "--topic", "orders")
    assert sparkmirror.run(*producer, text="one\n").exit_code == 0
    read = ("kafka-console-consumer", "--topic", "orders", "--from-beginning", "--max-messages=1")
    assert sparkmirror.run("lab", "exec", *read).stdout == "one\n"


def test_exit_code_of_a_tool_is_ours(started: CommandResult, sparkmirror: CommandLine) -> None:
    answer = sparkmirror.run("lab", "exec", "kafka-topics", "--describe", "--topic", "none")
    assert answer.exit_code == 1
    assert "Topic 'none' does not exist as expected" in answer.stdout + answer.stderr


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
            file.write("a line of ours\n")
        wait_until(lambda: "ours" in str(following.stdout and following.stdout.readline()), "ours")
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 130


@pytest.mark.parametrize(
    ("arguments", "sentence"),
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
def test_wrong_words_are_answered_with_one_sentence(
    started: CommandResult, sparkmirror: CommandLine, arguments: tuple[str, ...], sentence: str
) -> None:
    answer = sparkmirror.run("lab", *arguments)
    assert answer.exit_code == 1
    assert sentence in answer.stderr
    assert "Traceback" not in answer.stderr


def test_where_nothing_is_up_every_command_says_how_to_start(sparkmirror: CommandLine) -> None:
    elsewhere = ("--lab", "none")
    status = sparkmirror.run("lab", "status", *elsewhere)
    assert (status.exit_code, "start one with: sparkmirror lab up --lab none" in status.stdout) == (
        0,
        True,
    )
    assert sparkmirror.run("lab", "down", *elsewhere).stdout == "No lab 'none' is up.\n"
    stop = sparkmirror.run("lab", "stop", "primary", *elsewhere)
    assert (stop.exit_code, "start one with: sparkmirror lab up --lab none." in stop.stderr) == (
        1,
        True,
    )


def test_a_lab_that_a_restart_of_the_computer_ended_is_removed(
    sparkmirror: CommandLine, labs: Path
) -> None:
    LabStore(labs).write(LabRecord(name="old", clusters=(), boot_id="long ago"))
    answer = sparkmirror.run("lab", "status", "--lab", "old")
    assert "Lab 'old' ended when the computer restarted: files removed." in answer.stderr
    assert not (labs / "old").exists()


def test_interrupted_up_leaves_nothing(sparkmirror: CommandLine, labs: Path) -> None:
    (labs / "half" / "primary").mkdir(parents=True)  # of an `up` that a power failure ended
    with sparkmirror.start("lab", "up", "--lab", "half") as starting:
        record = labs / "half" / "primary" / "broker-1" / "process.json"
        wait_until(record.exists, "the first broker has a process", 120)
        process = json.loads(record.read_text(encoding="utf-8"))
        broker = ProcessIdentity(process["pid"], process["began"])
        assert broker.is_running()
        starting.send_signal(signal.SIGINT)
        said, _ = starting.communicate(timeout=90)
    assert (starting.returncode, said.splitlines()[-1]) == (130, "Interrupted.")
    assert not broker.is_running()
    assert not (labs / "half").exists()


def test_jars_are_checked_and_counted(sparkmirror: CommandLine) -> None:
    answer = sparkmirror.run("lab", "jars")
    assert answer.exit_code == 0
    assert answer.stdout.startswith("Kafka 4.3.1: ")
    assert "complete in" in answer.stdout
