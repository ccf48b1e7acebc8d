"""Orders: what the driver process can be told while it runs, one line of JSON each."""

from __future__ import annotations

import enum
import json
from dataclasses import asdict, dataclass
from typing import Self


class Do(enum.StrEnum):
    """What is to be done."""

    DRAIN = "drain"
    """Finish what is under way, give every lease back, let the receipts land, and end."""
    STOP = "stop"
    """End now. Whoever comes next has to find out where the partitions stand."""
    RATE = "rate"
    """From now on at most so many bytes a second for each task; 0 means no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order."""

    do: Do
    bytes_per_s: int = 0

    def to_line(self) -> bytes:
        """As one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """Read what `to_line` wrote."""
        value = json.loads(line)
        return cls(do=Do(value["do"]), bytes_per_s=int(value.get("bytes_per_s", 0)))
