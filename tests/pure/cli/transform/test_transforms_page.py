"""The examples of docs/transforms.md are true."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from sparkmirror.cli.transform.trial import try_transformations
from sparkmirror.cluster.produce_and_consume import ConsumerRecord
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.model import SourceAndTarget
from sparkmirror.transforms.configuration.connector_transformer import tolerates_errors

PAGE = Path(__file__).parents[4] / "docs" / "transforms.md"
FILE = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"
EXAMPLES = re.findall(
    r"```properties\n(.*?)```\n+```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
)
FIRST_LINE = re.compile(r"(?P<topic>.+)-(?P<partition>\d+) offset (?P<offset>\d+): \w+")


def connector_config(lines: str) -> dict[str, str]:
    opened = MirrorMakerConfig.open(parse_properties((FILE + lines).encode(), file="mm2"), {})
    flow = SourceAndTarget("A", "B")
    return opened.layered_connector_config(flow, MirrorConnector.SOURCE).props


def part(text: str) -> bytes | None:
    return None if text == "null" else text.encode()


def source_record(shown: str) -> tuple[str, ConsumerRecord]:
    """The topic and the record that an example shows: the first line of each part."""
    first, *lines = shown.splitlines()
    found = FIRST_LINE.fullmatch(first)
    assert found, first
    parts = {line[2:10].strip(): line[11:] for line in lines}
    headers = () if parts["headers"] == "none" else parts["headers"].split(", ")
    return found["topic"], ConsumerRecord(
        partition=int(found["partition"]),
        offset=int(found["offset"]),
        timestamp_ms=int(datetime.fromisoformat(parts["time"]).timestamp() * 1000),
        key=part(parts["key"]),
        value=part(parts["value"]),
        headers=tuple(
            (name, part(value)) for name, _, value in (one.partition(": ") for one in headers)
        ),
    )


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_page_shows_what_becomes_of_records(number: int) -> None:
    lines, shown = EXAMPLES[number]
    config = connector_config(lines)
    for block in shown.strip().split("\n\n"):
        topic, record = source_record(block)
        trial = try_transformations(config, topic, [record])
        (tried,) = trial.records
        assert [line.rstrip() for line in tried.text_lines()] == block.splitlines()
        assert not trial.refusals


def test_the_page_has_an_example_of_each_kind() -> None:
    configs = [connector_config(lines) for lines, _ in EXAMPLES]
    shown = "".join(text for _, text in EXAMPLES)
    assert {": sent", ": dropped", ": held"} <= set(re.findall(r": \w+(?=\n  topic)", shown))
    assert any(tolerates_errors(config) for config in configs)
    assert len(configs) >= 6
