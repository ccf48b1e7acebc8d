"""Control messages as JSON: one object with the message's `type` and its members. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, fields
from types import UnionType
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from sparkmirror.copy.control.failure_counts import FailureCounts
from sparkmirror.copy.control.messages import (
    ControlMessage,
    GrantLeases,
    LeaseEnded,
    LeaseEndReason,
    LeaseProgress,
    ProgressReport,
)
from sparkmirror.copy.lease import Lease
from sparkmirror.copy.record_ages import RecordAges
from sparkmirror.copy.transactional_producer_config import TransactionalProducer
from sparkmirror.errors import MirrorError

_PROGRESS_FIELDS = tuple(one.name for one in fields(LeaseProgress))
_MESSAGE_TYPES: dict[str, type[Any]] = {kind.type: kind for kind in get_args(ControlMessage)}


class MalformedMessage(MirrorError):
    """Bytes that are not a control message: another program, or another version."""


def encode(message: ControlMessage) -> bytes:
    """Return a message as JSON."""
    value = {name.name: _to_json(getattr(message, name.name)) for name in fields(message)}
    return json.dumps({"type": message.type, **value}, separators=(",", ":")).encode()


def decode(data: bytes) -> ControlMessage:
    """Read a message. Raises MalformedMessage, whose text repeats no member: one may be secret."""
    kind: type[Any] | None = None
    try:
        value = json.loads(data)
        kind = _MESSAGE_TYPES[value.pop("type")]
        message: ControlMessage = kind(**_from_json(kind, value))
        _check_members(message)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        name = kind.__name__ if kind else "message"
        raise MalformedMessage(
            f"{len(data)} bytes are not a {name} of this version;"
            " run the same version of sparkmirror everywhere"
        ) from None
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
            key: LeaseProgress(**dict(zip(_PROGRESS_FIELDS, values, strict=True)))
            for key, values in value["progress"].items()
        }
        value["failures"] = {
            key: FailureCounts(*map(int, counts)) for key, counts in value["failures"].items()
        }
        value["ages"] = {key: RecordAges.from_json(ages) for key, ages in value["ages"].items()}
    return value


def _member_types(kind: type[Any]) -> dict[str, tuple[type[Any], ...]]:
    """Return the types that each member of a message may have; of a list or a map, that alone."""
    members: dict[str, tuple[type[Any], ...]] = {}
    for name, hint in get_type_hints(kind).items():
        if get_origin(hint) is ClassVar:
            continue
        alternatives = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        members[name] = tuple(get_origin(each) or each for each in alternatives)
    return members


_MEMBER_TYPES = {kind: _member_types(kind) for kind in _MESSAGE_TYPES.values()}


def _check_members(message: ControlMessage) -> None:
    for name, types in _MEMBER_TYPES[type(message)].items():
        value = getattr(message, name)
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise TypeError(name)
