"""How records are delivered: at once under a sequence of their own, or in transactions.

    SEQUENCED      plain batches that a reader sees at once; nothing lost, nothing twice (`lease`)
    EXACTLY_ONCE   as Kafka Connect means it: batches and source offsets in one transaction, seen by
                   readers at read_committed when it is committed (`transaction`, `terms`)

Pure. Knows Connect's settings for transactions and what they mean here.
"""

from __future__ import annotations

import enum

from sparkmirror.errors import BadRequest

DEFAULT_COMMIT_INTERVAL_S = 0.1
"""As often as it pays: each commit costs a marker in every partition it touches."""
DEFAULT_TRANSACTION_TIMEOUT_S = 30.0
"""After so long without an end the target aborts by itself; readers wait for it as long."""


def transaction_timeout_for(commit_every_s: float, timeout_s: float) -> float:
    """How long a transaction may take: as it is said, unless commits are too far apart for that."""
    return timeout_s if timeout_s >= 2 * commit_every_s else 2 * commit_every_s + 10


class DeliveryMode(enum.StrEnum):
    """What a job promises."""

    SEQUENCED = "sequenced"
    EXACTLY_ONCE = "exactly-once"


class TransactionBoundary(enum.StrEnum):
    """Connect's `transaction.boundary`: what ends a transaction."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


def commit_interval_for(
    boundary: TransactionBoundary, interval_ms: int | None, flush_interval_ms: int
) -> float:
    """Seconds between commits for Connect's settings.

    `interval_ms` is `transaction.boundary.interval.ms`, and where it is not set the worker's
    `offset.flush.interval.ms` counts, as in Connect. A poll is what one fetch brings; here fetches
    overlap, so its place is taken by a commit as often as it pays.
    """
    match boundary:
        case TransactionBoundary.POLL:
            return DEFAULT_COMMIT_INTERVAL_S
        case TransactionBoundary.INTERVAL:
            return (flush_interval_ms if interval_ms is None else interval_ms) / 1000
        case TransactionBoundary.CONNECTOR:
            raise BadRequest("a mirror defines no transactions of its own; use poll or interval")
