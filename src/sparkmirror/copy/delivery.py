"""The delivery modes, and Connect's transaction settings.

    SEQUENCED      idempotent batches that consumers see at once; no loss, no duplicates (`lease`)
    EXACTLY_ONCE   as in Kafka Connect: batches and source offsets in one transaction; consumers at
                   read_committed see them after the commit (`task.transaction_manager`)
    AT_LEAST_ONCE  what SEQUENCED becomes on a target without producer ids; no job asks for it

Pure.
"""

from __future__ import annotations

import enum

from sparkmirror.errors import BadRequest

DEFAULT_COMMIT_INTERVAL_S = 0.1
"""Each commit costs a marker in every partition it touches, so more commits do not pay."""
DEFAULT_TRANSACTION_TIMEOUT_S = 30.0
"""The target aborts a transaction that is open for so long. Consumers wait until then."""


def transaction_timeout_for(commit_interval_s: float, timeout_s: float) -> float:
    """Return the timeout; a longer one if it is less than two commit intervals."""
    return timeout_s if timeout_s >= 2 * commit_interval_s else 2 * commit_interval_s + 10


class DeliveryMode(enum.StrEnum):
    """How records are delivered."""

    SEQUENCED = "sequenced"
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class TransactionBoundary(enum.StrEnum):
    """Connect's `transaction.boundary`: what ends a transaction."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


def commit_interval_for(
    boundary: TransactionBoundary, interval_ms: int | None, flush_interval_ms: int
) -> float:
    """Return the seconds between commits. Raises BadRequest for boundary `connector`.

    `interval_ms` is `transaction.boundary.interval.ms`. Without it the worker's
    `offset.flush.interval.ms` applies, as in Connect. For boundary `poll` Connect commits after
    each poll. Here fetches overlap, so the task commits at the default interval instead.
    """
    match boundary:
        case TransactionBoundary.POLL:
            return DEFAULT_COMMIT_INTERVAL_S
        case TransactionBoundary.INTERVAL:
            return (flush_interval_ms if interval_ms is None else interval_ms) / 1000
        case TransactionBoundary.CONNECTOR:
            raise BadRequest("a mirror defines no transactions of its own; use poll or interval")
