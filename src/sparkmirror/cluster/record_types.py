"""One record: as it is to be written, and as a broker keeps it. Values only, no client."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerRecord:
    """A record to write. Without a partition its key decides, without a time the clock does.

    Kafka also knows headers without a value and records with neither key nor value; the client
    library refuses to write those.
    """

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    partition: int | None = None
    timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        if self.key is None and self.value is None:
            raise ValueError("a record to write needs a key or a value")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRecord:
    """A record as a broker keeps it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
