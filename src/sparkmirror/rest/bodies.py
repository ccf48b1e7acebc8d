"""Bodies of requests: JSON read the way Connect reads it, and refused where Connect refuses it.

A config may hold texts, numbers, booleans and nulls; numbers keep the digits they were written
with (`1.50`, `1e3`), because in the config topic everything is text. Members that a request does
not have are refused. All this is a 500 in Connect, and therefore here; the words are our own, and
never repeat a value, which may be a secret.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sparkmirror.config.value import trim
from sparkmirror.connect.herding import Config, Offsets
from sparkmirror.errors import RequestFailed
from sparkmirror.mirror.connect_configs import TargetState
from sparkmirror.mirror.connect_json import JsonValue

Object: TypeAlias = Mapping[str, JsonValue]

_INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


class _Digits(str):
    """A number, as it was written."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """What a POST to /connectors asks for."""

    name: str
    config: Config
    initial_state: TargetState | None


def read_create(body: bytes) -> CreateRequest:
    """Read the body of a POST to /connectors."""
    request = _object(_parse(body, integer=_Digits, real=_Digits), "the request")
    _only(request, "config", "name", "initial_state")
    name = request.get("name")
    return CreateRequest(
        name="" if name is None else trim(_scalar(name, "name")),
        config=_config(request.get("config"), "config"),
        initial_state=_initial_state(request.get("initial_state")),
    )


def read_config(body: bytes) -> Config:
    """Read a body that is a connector's config."""
    return _config(_parse(body, integer=_Digits, real=_Digits), "the config")


def read_patch(body: bytes) -> Config | None:
    """Read a body of members to be changed, or removed where they are null."""
    patch = _parse(body, integer=_Digits, real=_Digits)
    return None if patch is None else _config(patch, "the patch")


def read_offsets(body: bytes) -> Sequence[Offsets]:
    """Read the body of a PATCH of offsets. Numbers are numbers here."""
    request = _object(_parse(body, integer=int, real=_finite), "the request")
    _only(request, "offsets")
    offsets = request.get("offsets")
    if offsets is None:
        return ()
    if not isinstance(offsets, Sequence) or isinstance(offsets, str):
        raise _unfit("offsets", "a list", offsets)
    return tuple(_offsets(item) for item in offsets)


def read_level(body: bytes) -> str | None:
    """Read the level out of the body of a PUT of a logger."""
    request = _object(_parse(body, integer=_Digits, real=_Digits), "the request")
    level = request.get("level")
    return None if level is None else _scalar(level, "level")


def _parse(
    body: bytes, *, integer: Callable[[str], int | str], real: Callable[[str], float | str]
) -> JsonValue:
    if not body.strip():
        return None
    try:
        value: JsonValue = json.loads(
            body, parse_int=integer, parse_float=real, parse_constant=_refuse_constant
        )
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise RequestFailed("The body of the request is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise RequestFailed(f"The body of the request is not JSON: {error.msg} ({place})") from None
    except ValueError as error:
        raise RequestFailed(f"The body of the request is not JSON: {error}") from None
    except RecursionError:
        raise RequestFailed("The body of the request is nested too deeply") from None
    return value


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _object(value: JsonValue, what: str) -> Object:
    if not isinstance(value, Mapping):
        raise _unfit(what, "an object", value)
    return value


def _only(request: Object, *known: str) -> None:
    for member in request:
        if member not in known:
            names = ", ".join(f'"{name}"' for name in known)
            raise RequestFailed(
                f'Unrecognized field "{member}", not marked as ignorable (known: {names})'
            )


def _config(value: JsonValue, what: str) -> Config:
    members = _object(value, what)
    return {
        name: None if member is None else _scalar(member, f'{what}["{name}"]')
        for name, member in members.items()
    }


def _scalar(value: JsonValue, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    raise _unfit(what, "a text, a number or a boolean", value)


def _initial_state(value: JsonValue) -> TargetState | None:
    if value is None:
        return None
    state = _INITIAL_STATES.get(_scalar(value, "initial_state").upper())
    if state is None:
        known = ", ".join(_INITIAL_STATES)
        raise RequestFailed(f"Unknown initial_state; it is one of {known}")
    return state


def _offsets(value: JsonValue) -> Offsets:
    item = _object(value, "an item of offsets")
    _only(item, "partition", "offset")
    partition, offset = item.get("partition"), item.get("offset")
    return Offsets(
        partition=None if partition is None else _object(partition, "partition"),
        offset=None if offset is None else _object(offset, "offset"),
    )


def _unfit(what: str, wanted: str, value: JsonValue) -> RequestFailed:
    return RequestFailed(f"Cannot read {what}: {wanted} was expected, not {_kind(value)}")


def _kind(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, _Digits | int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"
