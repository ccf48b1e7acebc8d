"""The ledger: the copy position of each partition, stored in Connect's offsets topic.

    key    ["<connector>",{"cluster":"A","partition":0,"topic":"t"}]        as Connect writes it
    value  {"offset":N,"target":T,"pid":P,"epoch":E,"anchor":A,"open":true,"records":C,...}
           with "pid":-1 if it was written in a transaction, together with the copied records,
           and with "conductor":"<id>","task":K if several conductors share the connector;
           with "pid":-2 if the batches have no producer id, and then with "open":true,
           "closed":true if the lease ended cleanly;
           with "chain":"<sha-256>" if transformations change or drop records;
           with "remote":"<topic>" if the remote topic is not named A.t, or has no topic id

Java MirrorMaker 2 reads and writes `offset`, the last copied source offset. Only sparkmirror writes
the other members. Java ignores them and drops them when it writes. So an entry without them was
written by another program.

A version that knows no batches without a producer id takes an entry with "pid":-2 for open. It
tries to fence the partition instead of writing sequences that the target does not check, and stops.

The name of the remote topic says whether another topic id means a topic that was created again, or
another topic because the operator has changed the names. A.t is the name that
DefaultReplicationPolicy gives with its default separator. Most entries thus do not have the name.

Invariant: every pair (offset, target) ever written is true: the records to copy up to `offset` are
exactly the records below `target`, apart from our fences. An old pair stays true, so a late write
by a stale driver does no harm. In transactions the target is not compared: the last committed pair
is the truth, so only the owner of a transactional id of the connector may write one.

Several conductors of one connector, one in each worker, share the ledger, and each partition has
one owner at a time. A conductor claims a partition: it writes an open entry with its own id, and
reads the records behind the entry that it continues. If another conductor wrote first, the claim is
lost (`copy.driver.ledger_cache`). An open entry of its own that is known to be the last one stored
is a claim already. So of two conductors that continue the same closed entry one
gets the partition, without a fence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from sparkmirror.copy.lease import (
    NO_TASK,
    NOT_IDEMPOTENT,
    TRANSACTIONAL_IDENTITY,
    Lease,
    LeaseIdentity,
)
from sparkmirror.errors import ClusterError
from sparkmirror.mirror.topics.replication_policy import DefaultReplicationPolicy
from sparkmirror.model import TopicPartition
from sparkmirror.wire.batch.header import NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """The entry of one source partition. `extension` is None if another program wrote it."""

    position: int
    """The next source offset to copy."""
    extension: LedgerExtension | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerExtension:
    """The members of an entry that only sparkmirror writes."""

    expected: int
    identity: LeaseIdentity
    is_open: bool
    records: int = 0
    """Records copied so far; 0 in entries of versions that did not count."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    source_epoch: int = NO_EPOCH
    """Leader epoch of the record before the position."""
    conductor: str = ""
    """The conductor that wrote it; empty if no other conductor shared the connector."""
    task: int = NO_TASK
    """The task whose transactional id may write the entry, if `conductor` is set."""
    chain: str = ""
    """The fingerprint of the transformations whose outcome is appended from `expected` on."""
    stored_remote: str = ""
    """The name of the remote topic that has `expected`, where `stored_remote_name` returns one."""

    @property
    def is_transactional(self) -> bool:
        """Whether it was written in a transaction, together with the copied records."""
        return self.identity == TRANSACTIONAL_IDENTITY


class LedgerChange(NamedTuple):
    """An entry that was stored, by any program; None if it was deleted."""

    partition: TopicPartition
    entry: LedgerEntry | None


class Ledger(Protocol):
    """The storage of ledger entries."""

    def load(self) -> dict[TopicPartition, LedgerEntry]:
        """Return the current entries of the connector. Blocks."""
        ...

    def save(self, entries: Mapping[TopicPartition, LedgerEntry]) -> None:
        """Store entries. Blocks until they are durable."""
        ...

    def changes(self) -> list[LedgerChange]:
        """Return what was stored since `load` or the last call, in the order of the log. Blocks."""
        ...

    def set_on_retry(self, on_retry: Callable[[ClusterError], None]) -> None:
        """Call back with every error after which `load` or `save` tries again."""
        ...

    def cancel(self) -> None:
        """End the running call and all later ones with CallCancelled. Any thread may call this."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def default_remote_name(source_alias: str, topic: str) -> str:
    """Return the name that an entry without a name stands for."""
    return DefaultReplicationPolicy().format_remote_topic(source_alias, topic)


def stored_remote_name(source_alias: str, topic: str, remote: str, target_topic_id: str) -> str:
    """Return the name of the remote topic as an entry has it; '' if the entry leaves it out.

    Without a topic id an entry has every name: there an entry without a name is one of an earlier
    version, and its name is unknown.
    """
    is_default = remote == default_remote_name(source_alias, topic)
    return "" if is_default and target_topic_id else remote


def entry_for_lease(lease: Lease, *, is_open: bool) -> LedgerEntry:
    """Return the entry of a lease."""
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
            conductor=lease.conductor,
            task=lease.task,
            chain=lease.chain,
            stored_remote=lease.stored_remote,
        ),
    )


def encode_entry(entry: LedgerEntry) -> dict[str, Any]:
    """Return the value for the offsets topic."""
    value: dict[str, Any] = {"offset": entry.position - 1}
    if entry.extension:
        is_idempotent = entry.extension.identity.producer_id != NOT_IDEMPOTENT
        value |= {
            "target": entry.extension.expected,
            "pid": entry.extension.identity.producer_id,
            "epoch": entry.extension.identity.producer_epoch,
            "anchor": entry.extension.identity.anchor,
            "open": entry.extension.is_open or not is_idempotent,
            "records": entry.extension.records,
            "source_id": entry.extension.source_topic_id,
            "target_id": entry.extension.target_topic_id,
            "source_epoch": entry.extension.source_epoch,
        }
        if not (is_idempotent or entry.extension.is_open):
            value["closed"] = True
        if entry.extension.conductor:
            value |= {"conductor": entry.extension.conductor, "task": entry.extension.task}
        if entry.extension.chain:
            value["chain"] = entry.extension.chain
        if entry.extension.stored_remote:
            value["remote"] = entry.extension.stored_remote
    return value


def decode_entry(value: Mapping[str, Any]) -> LedgerEntry | None:
    """Read a value of the offsets topic; return None if it has no offset."""
    last = value.get("offset")
    if not isinstance(last, int) or last < -1:
        return None
    try:
        identity = LeaseIdentity(
            producer_id=int(value["pid"]),
            producer_epoch=int(value["epoch"]),
            anchor=int(value["anchor"]),
        )
        extension = LedgerExtension(
            expected=int(value["target"]),
            identity=identity,
            is_open=bool(value["open"]) and not value.get("closed"),
            records=int(value.get("records", 0)),
            source_topic_id=str(value.get("source_id", "")),
            target_topic_id=str(value.get("target_id", "")),
            source_epoch=int(value.get("source_epoch", NO_EPOCH)),
            conductor=str(value.get("conductor", "")),
            task=int(value.get("task", NO_TASK)),
            chain=str(value.get("chain", "")),
            stored_remote=str(value.get("remote", "")),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return LedgerEntry(position=last + 1)
    return LedgerEntry(position=last + 1, extension=extension)
