"""What Java's classes take from their process: the default time zone and the clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, tzinfo


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaEnvironment:
    """The environment of a chain. The caller reads the clock once, when it compiles the chain.

    `zone` is the default time zone: Connect reads and writes dates of headers in it. `now_ms`
    decides the century of years with two digits.
    """

    now_ms: int
    zone: tzinfo = UTC
