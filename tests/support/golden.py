"""Reads what the Java original answered and wrote: tests/golden/README.md says how it was made."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparkmirror.mirror.offsets.records import RecordBytes

GOLDEN = Path(__file__).parents[1] / "golden"


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldenRecord:
    """One record of a recorded topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    record: RecordBytes


def golden_json(name: str) -> Any:
    """Read one JSON file, named below tests/golden."""
    return json.loads((GOLDEN / name).read_text("utf-8"))


def golden_lines(name: str) -> list[Any]:
    """Read one file of JSON lines, named below tests/golden."""
    return [json.loads(line) for line in (GOLDEN / name).read_text("utf-8").splitlines()]


def golden_records(name: str) -> list[GoldenRecord]:
    """Read the recorded records of one file, in its order."""
    return [
        GoldenRecord(
            topic=line["topic"],
            partition=line["partition"],
            offset=line["offset"],
            timestamp_ms=line["timestamp"],
            record=RecordBytes(from_base64(line["key"]), from_base64(line["value"])),
        )
        for line in golden_lines(name)
    ]


def from_base64(text: str | None) -> bytes | None:
    """Decode what the recordings hold for bytes."""
    return None if text is None else base64.b64decode(text)
