"""What a task and the driver say to each other over the control channel.

    task   → driver   Hello  Report  Ended  Done
    driver → task     Welcome  Grant  Revoke  Beat  Rate  Drain  Dismiss
    query  → driver   NextEpoch        driver → query   Epoch

Every message is a frozen value that travels as one JSON object with its `type`. A task never asks
for a partition: it is granted leases, reports on them once a second, and gives each one back with
`Ended`, saying how it ended. Whoever hears nothing for too long acts on its own: a task without a
`Beat` stops copying, a driver without a `Report` takes the task's partitions away.

Knows no socket; `encode` and `decode` are all the transport needs.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any, ClassVar, get_args

from sparkmirror.copy.lease import Lease
from sparkmirror.copy.transactional_producer import TransactionalProducer
from sparkmirror.errors import MirrorError


class LeaseEndReason(enum.StrEnum):
    """How a lease ended; the driver decides by it what must happen before the next one."""

    CLOSED = "closed"
    """Everything fetched is acknowledged. The next owner goes on under the same identity."""
    AMBIGUOUS = "ambiguous"
    """Something was sent whose fate is unknown and cannot be found out by sending it again."""
    FENCED = "fenced"
    """Somebody else owns the partition now."""
    OUT_OF_RANGE = "out-of-range"
    """The source's log does not hold the position: retention, truncation or another topic."""
    SOURCE_GONE = "source-gone"
    """The source topic was deleted, or recreated under the same name."""
    TARGET_GONE = "target-gone"
    """The remote topic was deleted, or recreated under the same name."""
    REFUSED = "refused"
    """Something cannot be copied as it is: too large, damaged, a timestamp out of bounds."""
    NOT_AUTHORIZED = "not-authorized"
    """A right is missing on one of the two sides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """A task attempt has begun and asks for nothing but to be told what to do."""

    type: ClassVar[str] = "hello"
    task: int
    attempt: int
    host: str
    pid: int
    epoch: int = 0
    retry: int = 0
    """How many attempts of the task there were before it in its epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseProgress:
    """Where one partition stands: next offsets, records copied so far, and the source's end."""

    position: int
    expected: int
    records: int
    end_offset: int
    max_timestamp_ms: int = -1
    held_reason: str = ""
    leader_epoch: int = -1
    """Leader epoch of what was last read of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressReport:
    """What happened since the last report, and where everything stands, by source partition."""

    type: ClassVar[str] = "report"
    progress: dict[str, LeaseProgress]
    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    lanes: dict[str, dict[str, int]] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseEnded:
    """One lease is given back. The task will not write to that partition again."""

    type: ClassVar[str] = "ended"
    partition: str
    reason: LeaseEndReason
    message: str
    position: int
    expected: int
    records: int
    is_clean: bool
    """Whether the fate of everything that was ever sent is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDone:
    """Every lease was given back; the task is about to return."""

    type: ClassVar[str] = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """How to copy: see `copy.settings`."""

    type: ClassVar[str] = "welcome"
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantLeases:
    """Leases to use from now on, and the rules of the remote topics they name.

    In exactly-once mode with the term under which the task commits: another one replaces it.
    """

    type: ClassVar[str] = "grant"
    leases: list[Lease]
    target_limits: dict[str, dict[str, Any]]
    transactional_producer: TransactionalProducer | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeLeases:
    """Give these leases back: drain, then `Ended`."""

    type: ClassVar[str] = "revoke"
    partitions: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportAck:
    """The driver has heard one more report: every lease goes on, counted from that report.

    Each report is answered by one beat. So a beat that was read late, after a long sleep, does not
    stand for more than it is worth.
    """

    type: ClassVar[str] = "beat"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetRateLimit:
    """From now on at most so many bytes a second; 0 means no limit."""

    type: ClassVar[str] = "rate"
    bytes_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Give everything back, then `Done`."""

    type: ClassVar[str] = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTask:
    """The task was given up, and its partitions are others' by now: stop at once, come anew."""

    type: ClassVar[str] = "dismiss"
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEpoch:
    """The query has finished an epoch (its receipts have landed) and asks for the one after it."""

    type: ClassVar[str] = "next-epoch"
    finished_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochAssignment:
    """The epoch to run, for so many tasks. The one asked about again means: none for now."""

    type: ClassVar[str] = "epoch"
    number: int
    tasks: int
    log_levels: Mapping[str, int] = field(default_factory=dict)
    """Levels that the tasks of the epoch set, by Python logger."""


TaskMessage = Hello | ProgressReport | LeaseEnded | TaskDone
DriverMessage = Welcome | GrantLeases | RevokeLeases | ReportAck | SetRateLimit | Drain | AbortTask
ControlMessage = TaskMessage | DriverMessage | RequestEpoch | EpochAssignment

_PROGRESS_FIELDS = tuple(name.name for name in fields(LeaseProgress))
_MESSAGE_TYPES: dict[str, type[Any]] = {kind.type: kind for kind in get_args(ControlMessage)}


class MalformedMessage(MirrorError):
    """Bytes on the control channel that are no message: another program, or another version."""


def encode(message: ControlMessage) -> bytes:
    """Write a message as JSON."""
    value = {name.name: _to_json(getattr(message, name.name)) for name in fields(message)}
    return json.dumps({"type": message.type, **value}, separators=(",", ":")).encode()


def decode(data: bytes) -> ControlMessage:
    """Read a message; whatever is not one raises MessageError."""
    try:
        value = json.loads(data)
        kind = _MESSAGE_TYPES[value.pop("type")]
        message: ControlMessage = kind(**_from_json(kind, value))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MalformedMessage(
            f"{data[:80]!r} on the control channel is no message of this version ({error});"
            " run the same version of sparkmirror everywhere"
        ) from error
    return message


def _to_json(value: Any) -> Any:
    if isinstance(value, Lease | TransactionalProducer):
        return value.to_json()
    if isinstance(value, LeaseProgress):
        return list(astuple(value))
    if isinstance(value, Mapping):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_to_json(item) for item in value]
    return value


def _from_json(kind: type[Any], value: dict[str, Any]) -> dict[str, Any]:
    if kind is GrantLeases:
        value["leases"] = [Lease.from_json(lease) for lease in value["leases"]]
        value["transactional_producer"] = (
            TransactionalProducer.from_json(value["transactional_producer"])
            if value["transactional_producer"]
            else None
        )
    elif kind is LeaseEnded:
        value["reason"] = LeaseEndReason(value["reason"])
    elif kind is ProgressReport:
        value["runs"] = [(str(p), int(s), int(t), int(n)) for p, s, t, n in value["runs"]]
        value["progress"] = {
            key: LeaseProgress(**dict(zip(_PROGRESS_FIELDS, at, strict=True)))
            for key, at in value["progress"].items()
        }
    return value
