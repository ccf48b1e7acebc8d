"""Options of `copy`: parsed values and error messages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sparkmirror.cli.copy import options
from sparkmirror.copy.job import StartMode, StartPosition
from sparkmirror.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("50MB", 50_000_000),
        ("50 mb/s", 50_000_000),
        ("1.5GiB", 3 << 29),
        ("8k", 8_000),
        ("800000", 800_000),
        ("2Ti", 2 << 40),
    ],
)
def test_rate_is_a_number_with_a_unit(text: str, rate: int) -> None:
    assert options.parse_rate(text) == rate


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", StartPosition()),
        ("latest", StartPosition(at=StartMode.LATEST)),
        ("1700000000000", StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=1_700_000_000_000)),
        (
            "2023-11-14T22:13:20Z",
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=1_700_000_000_000),
        ),
        (
            "2023-11-14T22:13:20",
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=1_700_000_000_000),
        ),
        (
            "2023-11-14T23:13:20+01:00",
            StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=1_700_000_000_000),
        ),
        ("2023-11-14", StartPosition(at=StartMode.TIMESTAMP, timestamp_ms=1_699_920_000_000)),
    ],
    ids=["earliest", "latest", "ms", "zulu", "no-zone", "zone", "day"],
)
def test_start_is_a_mode_or_a_time(text: str, start: StartPosition) -> None:
    assert options.parse_start(text) == start


@pytest.mark.parametrize(
    "content",
    ['{"a-b-0": 12, "c-3": 0}', '{"a-b": {"0": 12}, "c": {"3": 0}}'],
    ids=["flat", "spark"],
)
def test_offsets_file_may_be_flat_or_nested(tmp_path: Path, content: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    start = options.parse_start(f"offsets:{file}")
    assert start == StartPosition(at=StartMode.OFFSETS, offsets={"a-b-0": 12, "c-3": 0})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "must hold an object"),
        ('{"orders": 1}', "'orders' is not of the form topic-partition"),
        ('{"orders-0": -1}', "orders-0: -1 is no offset"),
        ('{"orders-0": true}', "orders-0: true is no offset"),
        ('{"orders": {"0": "x"}}', 'orders-0: "x" is no offset'),
    ],
    ids=["json", "list", "name", "negative", "boolean", "text"],
)
def test_error_of_an_offsets_file_names_file_and_partition(
    tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    with pytest.raises(click.BadParameter) as raised:
        options.parse_start(f"offsets:{file}")
    assert str(file) in raised.value.message
    assert message in raised.value.message


def test_missing_offsets_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match=r"none.json cannot be read: No such file"):
        options.parse_start(f"offsets:{tmp_path / 'none.json'}")


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (options.parse_rate, "fast", "write 50MB"),
        (options.parse_rate, "5i", "write 50MB"),
        (options.parse_rate, "0", "leave it out for no limit"),
        (options.parse_start, "yesterday", "is none of earliest, latest"),
        (options.parse_servers, "localhost", "'localhost' is not of the form host:port"),
        (options.parse_servers, " , ", "name at least one broker"),
        (options.parse_patterns, ",", "name at least one topic"),
        (options.parse_patterns, "a(", "pattern 'a(' has a group never closed"),
        (options.parse_alias, "a b", "cannot be part of a topic's name"),
        (options.parse_name, " ", "is no name for a connector"),
    ],
    ids=[
        *("rate", "unit", "nothing", "start", "port", "servers"),
        *("topics", "regex", "alias", "name"),
    ],
)
def test_malformed_option_is_rejected(
    parse: Callable[[str], object], text: str, message: str
) -> None:
    with pytest.raises(click.BadParameter) as raised:
        parse(text)
    assert message in raised.value.message


def test_blanks_around_servers_and_patterns_are_removed() -> None:
    assert options.parse_servers(" a:1, [::1]:2,") == "a:1,[::1]:2"
    assert options.parse_patterns("orders , pay.*") == ("orders", "pay.*")


def test_policy_is_a_short_name_or_a_class() -> None:
    assert options.parse_policy("Identity").endswith(".IdentityReplicationPolicy")
    assert options.parse_policy("com.example.Mine") == "com.example.Mine"
    named = "sparkmirror.mirror.topics.replication_policy:DefaultReplicationPolicy"
    assert options.import_policy(named).__name__ == "DefaultReplicationPolicy"
    with pytest.raises(ConfigError, match="nowhere:Mine cannot be imported"):
        options.import_policy("nowhere:Mine")


def test_last_conf_of_a_key_wins_and_malformed_conf_is_rejected() -> None:
    @click.command()
    @click.option("--conf", multiple=True, callback=options.parse_conf)
    def command(conf: dict[str, str]) -> None:
        click.echo(sorted(conf.items()))

    run = CliRunner().invoke
    result = run(command, ["--conf", "spark.a=1", "--conf", "spark.b=x=y", "--conf", "spark.a=2"])
    assert result.output == "[('spark.a', '2'), ('spark.b', 'x=y')]\n"
    for wrong in ("spark.a", "a=1"):
        rejected = run(command, ["--conf", wrong])
        assert rejected.exit_code == 2
        assert "write spark.KEY=VALUE" in rejected.output
