"""The decisions of a takeover: when it may begin, which lease follows, what is reported. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sparkmirror.copy.driver.fencing.fence import LogEnd
from sparkmirror.copy.driver.fencing.reconcile import ReconciledPosition
from sparkmirror.copy.driver.resume.resume_point_decision import truncation_warning
from sparkmirror.copy.lease import Lease, LeaseIdentity
from sparkmirror.wire.protocol.producer_ids import ProducerIdAndEpoch

MAX_SINGLE_EVENTS = 100
"""If more partitions are taken over at once, one event counts those without news: ten thousand
events would be all that an operator sees."""
SETTLE_S = 1.0
"""How long a target may take to append a request of a lost connection."""


def may_append_for_s(
    lease: Lease,
    fenceable_producer_id: int | None,
    lease_timeout_s: float,
    *,
    plain_timeout_s: float,
    is_given_back: bool = False,
) -> float:
    """Return for how long after the end of a lease its owner may still append; 0 behind a fence.

    A fence raises the epoch of one producer id. It does not stop an owner that wrote under another
    one: without a transactional id, or under one that the brokers have forgotten.
    `fenceable_producer_id` is None if there is no fence. An owner that has given the lease back
    (`is_given_back`) sends nothing more, and any other one stops by itself. What it sent last may
    be appended after that. Under a producer id the sequence then keeps it from coming twice.
    Without one, the target may work on a request for `plain_timeout_s`.
    """
    if lease.is_idempotent and lease.identity.producer_id == fenceable_producer_id:
        return 0.0
    if is_given_back:
        return SETTLE_S
    if lease.is_idempotent:
        return lease_timeout_s
    return max(lease_timeout_s, plain_timeout_s) + SETTLE_S


def continues_sequence(lease: Lease, target_end: int, found: ReconciledPosition) -> bool:
    """Whether everything up to the end of the target log was appended under the old identity."""
    return target_end == lease.expected + found.appended and not found.has_foreign_records


def next_lease(
    lease: Lease,
    found: ReconciledPosition,
    target_end: int,
    producer: ProducerIdAndEpoch | None,
) -> Lease:
    """Return the lease of the next owner; without a producer the old identity continues."""
    identity = lease.identity
    if producer:
        identity = LeaseIdentity(
            producer_id=producer.producer_id, producer_epoch=producer.epoch, anchor=target_end
        )
    return replace(
        lease,
        position=found.position,
        expected=target_end,
        identity=identity,
        records=lease.records + found.appended,
    )


def is_counted_with_others(lease: Lease, found: ReconciledPosition, together: int) -> bool:
    """Return whether one event counts the takeover with others of the same moment.

    Without a producer id that is always so. Else there must be many together, and the last owner
    must have reported all that it had appended.
    """
    return not lease.is_idempotent or (together > MAX_SINGLE_EVENTS and not found.appended)


def takeover_events(
    lease: Lease, log_end: LogEnd, found: ReconciledPosition, *, is_counted: bool = False
) -> list[tuple[str, str]]:
    """Return kind and text of the events of one partition.

    The takeover itself is among them unless it is counted with others.
    """
    events = []
    if found.has_foreign_records:
        text = f"another producer writes to {lease.target}; protect the remote topic by an ACL"
        events.append(("foreign-writer", text))
    if text := truncation_warning(lease.target, lease.expected, log_end.end_before_fence):
        events.append(("remote-truncated", text))
    if not is_counted:
        events.append(("takeover", takeover_text([found])))
    return events


def takeover_text(found: Collection[ReconciledPosition]) -> str:
    """Return the text of the event for partitions that were taken over together."""
    first = next(iter(found))
    appended = sum(one.appended for one in found)
    if len(found) > 1:
        return (
            f"the last owners of {len(found)} partitions, this one among them, had appended"
            f" {appended} records that they did not report; going on behind those ({first.method})"
        )
    return (
        f"the last owner had appended {appended} records that it did not report;"
        f" going on at source offset {first.position} ({first.method})"
    )
