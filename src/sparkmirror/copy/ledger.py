"""The ledger: where each partition stands, remembered in Connect's own offsets topic on the target.

    key    ["<connector>",{"cluster":"A","partition":0,"topic":"t"}]        as Connect writes it
    value  {"offset":N,"target":T,"pid":P,"epoch":E,"anchor":A,"open":true,"records":C,...}
           with "pid":-1 if it was written in a transaction, together with what it speaks of

`offset` is what Java MirrorMaker 2 reads and writes: the last source offset copied. The other
members are ours; Java ignores them and drops them when it writes, and so their absence tells that
somebody else wrote last.

Invariant: every pair (offset, target) ever written is true: what must be copied up to `offset` is
exactly what lies below `target`, our fences apart. An old pair stays true, so a late write by a
stale driver does no harm. In transactions there is no looking at the target: the last committed
pair is the truth, so only who holds a transactional id of the connector may write one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sparkmirror.copy.lease import TRANSACTIONAL_IDENTITY, Lease, LeaseIdentity
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What the ledger says of one source partition. `ours` is None if somebody else wrote last."""

    position: int
    """The next source offset to copy."""
    extension: LedgerExtension | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerExtension:
    """The members of an entry that only we write."""

    expected: int
    identity: LeaseIdentity
    is_open: bool
    records: int = 0
    """Copied so far; 0 if it was written by a version that did not count."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    source_epoch: int = NO_EPOCH
    """Leader epoch of the record before the position, as it was when that was copied."""

    @property
    def is_transactional(self) -> bool:
        """Whether it was written inside a transaction, together with what it speaks of."""
        return self.identity == TRANSACTIONAL_IDENTITY


class Ledger(Protocol):
    """Where entries are kept."""

    def load(self) -> dict[TopicPartition, LedgerEntry]:
        """Everything remembered for this connector, as of now."""
        ...

    def save(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Remember these; returns when they are safe."""
        ...

    def close(self) -> None:
        """Let go of what it needs to be reached."""
        ...


def entry_for_lease(lease: Lease, *, is_open: bool) -> LedgerEntry:
    """What to remember of a lease."""
    return LedgerEntry(
        position=lease.position,
        extension=LedgerExtension(
            expected=lease.expected,
            identity=lease.identity,
            is_open=is_open and not lease.is_transactional,
            records=lease.records,
            source_topic_id=lease.source_topic_id,
            target_topic_id=lease.target_topic_id,
            source_epoch=lease.source_epoch,
        ),
    )


def encode_entry(entry: LedgerEntry) -> dict[str, Any]:
    """The value for the offsets topic."""
    value: dict[str, Any] = {"offset": entry.position - 1}
    if entry.extension:
        value |= {
            "target": entry.extension.expected,
            "pid": entry.extension.identity.producer_id,
            "epoch": entry.extension.identity.producer_epoch,
            "anchor": entry.extension.identity.anchor,
            "open": entry.extension.is_open,
            "records": entry.extension.records,
            "source_id": entry.extension.source_topic_id,
            "target_id": entry.extension.target_topic_id,
            "source_epoch": entry.extension.source_epoch,
        }
    return value


def decode_entry(value: Mapping[str, Any]) -> LedgerEntry | None:
    """Read a value of the offsets topic; None if it names no offset."""
    last = value.get("offset")
    if not isinstance(last, int) or last < -1:
        return None
    try:
        identity = LeaseIdentity(
            producer_id=int(value["pid"]),
            producer_epoch=int(value["epoch"]),
            anchor=int(value["anchor"]),
        )
        ours = LedgerExtension(
            expected=int(value["target"]),
            identity=identity,
            is_open=bool(value["open"]),
            records=int(value.get("records", 0)),
            source_topic_id=str(value.get("source_id", "")),
            target_topic_id=str(value.get("target_id", "")),
            source_epoch=int(value.get("source_epoch", NO_EPOCH)),
        )
    except (KeyError, TypeError, ValueError):
        return LedgerEntry(position=last + 1)
    return LedgerEntry(position=last + 1, extension=ours)
