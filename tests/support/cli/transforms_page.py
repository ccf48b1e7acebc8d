"""The examples of docs/transforms.md: the config of a flow, and what becomes of records."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from sparkmirror.cluster.produce_and_consume import ConsumerRecord
from sparkmirror.config.files.flow_config_precedence import MirrorConnector
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.model import SourceAndTarget
from sparkmirror.transforms.spark_query import spark_query

PAGE = Path(__file__).parents[3] / "docs" / "transforms.md"
FILE = "clusters=A,B\nA.bootstrap.servers=a:1\nB.bootstrap.servers=b:1\nA->B.enabled=true\n"
_ALL_EXAMPLES = re.findall(
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


EXAMPLES = [one for one in _ALL_EXAMPLES if spark_query(connector_config(one[0])) is None]
"""Config and records of each example that needs no Spark."""
SPARK_EXAMPLES = [one for one in _ALL_EXAMPLES if one not in EXAMPLES]
FUNCTION_MODULES = dict(
    re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
)
"""The Python modules that the page shows."""
