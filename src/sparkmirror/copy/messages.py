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
from sparkmirror.copy.term import Term
from sparkmirror.errors import MirrorError


class How(enum.StrEnum):
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
class Standing:
    """Where one partition stands: next offsets, records copied so far, and the source's end."""

    position: int
    expected: int
    records: int
    end: int
    newest_ms: int = -1
    held: str = ""
    epoch: int = -1
    """Leader epoch of what was last read of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What happened since the last report, and where everything stands, by source partition."""

    type: ClassVar[str] = "report"
    standings: dict[str, Standing]
    runs: list[tuple[str, int, int, int]] = field(default_factory=list)
    lanes: dict[str, dict[str, int]] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """One lease is given back. The task will not write to that partition again."""

    type: ClassVar[str] = "ended"
    partition: str
    how: How
    why: str
    position: int
    expected: int
    records: int
    is_clean: bool
    """Whether the fate of everything that was ever sent is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Every lease was given back; the task is about to return."""

    type: ClassVar[str] = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """How to copy: see `copy.settings`."""

    type: ClassVar[str] = "welcome"
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Leases to use from now on, and the rules of the remote topics they name.

    In exactly-once mode with the term under which the task commits: another one replaces it.
    """

    type: ClassVar[str] = "grant"
    leases: list[Lease]
    targets: dict[str, dict[str, Any]]
    term: Term | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoke:
    """Give these leases back: drain, then `Ended`."""

    type: ClassVar[str] = "revoke"
    partitions: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """The driver has heard one more report: every lease goes on, counted from that report.

    Each report is answered by one beat. So a beat that was read late, after a long sleep, does not
    stand for more than it is worth.
    """

    type: ClassVar[str] = "beat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """From now on at most so many bytes a second; 0 means no limit."""

    type: ClassVar[str] = "rate"
    bytes_per_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Give everything back, then `Done`."""

    type: ClassVar[str] = "drain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dismiss:
    """The task was given up, and its partitions are others' by now: stop at once, come anew."""

    type: ClassVar[str] = "dismiss"
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEpoch:
    """The query has finished an epoch (its receipts have landed) and asks for the one after it."""

    type: ClassVar[str] = "next-epoch"
    after: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The epoch to run, for so many tasks. The one asked about again means: none for now."""

    type: ClassVar[str] = "epoch"
    number: int
    tasks: int


FromTask = Hello | Report | Ended | Done
ToTask = Welcome | Grant | Revoke | Beat | Rate | Drain | Dismiss
Message = FromTask | ToTask | NextEpoch | Epoch

_STANDING = tuple(name.name for name in fields(Standing))
_KINDS: dict[str, type[Any]] = {kind.type: kind for kind in get_args(Message)}


class MessageError(MirrorError):
    """Bytes on the control channel that are no message: another program, or another version."""


def encode(message: Message) -> bytes:
    """Write a message as JSON."""
    value = {name.name: _plain(getattr(message, name.name)) for name in fields(message)}
    return json.dumps({"type": message.type, **value}, separators=(",", ":")).encode()


def decode(data: bytes) -> Message:
    """Read a message; whatever is not one raises MessageError."""
    try:
        value = json.loads(data)
        kind = _KINDS[value.pop("type")]
        message: Message = kind(**_rebuilt(kind, value))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MessageError(
            f"{data[:80]!r} on the control channel is no message of this version ({error});"
            " run the same version of sparkmirror everywhere"
        ) from error
    return message


def _plain(value: Any) -> Any:
    if isinstance(value, Lease | Term):
        return value.to_json()
    if isinstance(value, Standing):
        return list(astuple(value))
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def _rebuilt(kind: type[Any], value: dict[str, Any]) -> dict[str, Any]:
    if kind is Grant:
        value["leases"] = [Lease.from_json(lease) for lease in value["leases"]]
        value["term"] = Term.from_json(value["term"]) if value["term"] else None
    elif kind is Ended:
        value["how"] = How(value["how"])
    elif kind is Report:
        value["runs"] = [(str(p), int(s), int(t), int(n)) for p, s, t, n in value["runs"]]
        value["standings"] = {
            key: Standing(**dict(zip(_STANDING, at, strict=True)))
            for key, at in value["standings"].items()
        }
    return value
