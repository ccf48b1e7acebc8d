"""What people say to `copy`, read or refused with a sentence."""

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
def test_rates(text: str, rate: int) -> None:
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
def test_starts(text: str, start: StartPosition) -> None:
    assert options.parse_start(text) == start


@pytest.mark.parametrize(
    "content",
    ['{"a-b-0": 12, "c-3": 0}', '{"a-b": {"0": 12}, "c": {"3": 0}}'],
    ids=["flat", "spark"],
)
def test_offsets_are_read_in_both_forms(tmp_path: Path, content: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    read = options.parse_start(f"offsets:{file}")
    assert read == StartPosition(at=StartMode.OFFSETS, offsets={"a-b-0": 12, "c-3": 0})


@pytest.mark.parametrize(
    ("content", "sentence"),
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
def test_bad_offsets_name_the_file_and_the_place(
    tmp_path: Path, content: str, sentence: str
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    with pytest.raises(click.BadParameter) as refused:
        options.parse_start(f"offsets:{file}")
    assert str(file) in refused.value.message
    assert sentence in refused.value.message


def test_a_file_of_offsets_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(click.BadParameter, match=r"none.json cannot be read: No such file"):
        options.parse_start(f"offsets:{tmp_path / 'none.json'}")


@pytest.mark.parametrize(
    ("read", "text", "sentence"),
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
def test_what_cannot_be_read_is_refused_with_a_sentence(
    read: Callable[[str], object], text: str, sentence: str
) -> None:
    with pytest.raises(click.BadParameter) as refused:
        read(text)
    assert sentence in refused.value.message


def test_servers_and_patterns_lose_their_blanks() -> None:
    assert options.parse_servers(" a:1, [::1]:2,") == "a:1,[::1]:2"
    assert options.parse_patterns("orders , pay.*") == ("orders", "pay.*")


def test_policies_have_short_names_and_may_be_imported() -> None:
    assert options.parse_policy("Identity").endswith(".IdentityReplicationPolicy")
    assert options.parse_policy("com.example.Mine") == "com.example.Mine"
    named = "sparkmirror.mirror.topics.replication_policy:DefaultReplicationPolicy"
    assert options.import_policy(named).__name__ == "DefaultReplicationPolicy"
    with pytest.raises(ConfigError, match="nowhere:Mine cannot be imported"):
        options.import_policy("nowhere:Mine")


def test_settings_for_spark_are_read_and_the_last_one_counts() -> None:
    @click.command()
    @click.option("--conf", multiple=True, callback=options.parse_conf)
    def command(conf: dict[str, str]) -> None:
        click.echo(sorted(conf.items()))

    run = CliRunner().invoke
    said = run(command, ["--conf", "spark.a=1", "--conf", "spark.b=x=y", "--conf", "spark.a=2"])
    assert said.output == "[('spark.a', '2'), ('spark.b', 'x=y')]\n"
    for wrong in ("spark.a", "a=1"):
        refused = run(command, ["--conf", wrong])
        assert refused.exit_code == 2
        assert "write spark.KEY=VALUE" in refused.output
