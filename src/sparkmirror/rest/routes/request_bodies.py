"""Parses the JSON bodies of requests as Connect does, and refuses what Connect refuses.

A config may contain strings, numbers, booleans and nulls. Numbers keep their digits (`1.50`,
`1e3`), because every value in the config topic is a string. Unknown members are refused. All these
errors are a 500 in Connect, so they are RequestFailed here. Their messages are not Connect's, and
never repeat a value: it may be a secret.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sparkmirror.config.definition.value_types import trim
from sparkmirror.connect.herder.herder import ConnectorOffset, RawConfig
from sparkmirror.errors import RequestFailed
from sparkmirror.mirror.connect_topics.connect_configs import TargetState
from sparkmirror.mirror.connect_topics.connect_json import JsonValue

JsonObject: TypeAlias = Mapping[str, JsonValue]

_INITIAL_STATES = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}


class _NumberText(str):
    """A JSON number with its original digits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateConnectorRequest:
    """The body of a POST to /connectors."""

    name: str
    config: RawConfig = field(repr=False)
    initial_state: TargetState | None


def parse_json(body: bytes) -> JsonValue:
    """The JSON value of a body. A number becomes text, as it was written."""
    return _parse(body, integer=_NumberText, real=_NumberText)


def read_create(body: bytes) -> CreateConnectorRequest:
    """Parse the body of a POST to /connectors."""
    return create_request(parse_json(body))


def create_request(value: JsonValue) -> CreateConnectorRequest:
    """The request of a POST to /connectors, from its JSON value."""
    request = _require_object(value, "the request")
    _reject_unknown_members(request, "config", "name", "initial_state")
    name = request.get("name")
    return CreateConnectorRequest(
        name="" if name is None else trim(_scalar_text(name, "name")),
        config=_config(request.get("config"), "config"),
        initial_state=_initial_state(request.get("initial_state")),
    )


def read_config(body: bytes) -> RawConfig:
    """Parse a body that is a connector config."""
    return connector_config(parse_json(body))


def connector_config(value: JsonValue) -> RawConfig:
    """A connector's config, from its JSON value."""
    return _config(value, "the config")


def read_patch(body: bytes) -> RawConfig | None:
    """Parse the body of a PATCH of a config. A null member removes a key. None: an empty body."""
    patch = parse_json(body)
    return None if patch is None else _config(patch, "the patch")


def read_offsets(body: bytes) -> Sequence[ConnectorOffset]:
    """Parse the body of a PATCH of offsets. Numbers become int and float."""
    request = _require_object(_parse(body, integer=int, real=_finite), "the request")
    _reject_unknown_members(request, "offsets")
    offsets = request.get("offsets")
    if offsets is None:
        return ()
    if not isinstance(offsets, Sequence) or isinstance(offsets, str):
        raise _type_error("offsets", "a list", offsets)
    return tuple(_offsets(item) for item in offsets)


def read_task_configs(body: bytes) -> Sequence[RawConfig]:
    """Parse the task configs that the owner of a connector sends to the leader."""
    configs = parse_json(body)
    if not isinstance(configs, Sequence) or isinstance(configs, str):
        raise _type_error("the task configs", "a list", configs)
    return [_config(config, f"task config {number}") for number, config in enumerate(configs)]


def read_level(body: bytes) -> str | None:
    """Parse the body of a PUT of a logger level. None if it has no level."""
    request = _require_object(parse_json(body), "the request")
    level = request.get("level")
    return None if level is None else _scalar_text(level, "level")


def _parse(
    body: bytes, *, integer: Callable[[str], int | str], real: Callable[[str], float | str]
) -> JsonValue:
    if not body.strip():
        return None
    try:
        value: JsonValue = json.loads(
            body, parse_int=integer, parse_float=real, parse_constant=_reject_constant
        )
        if b"\\u" in body:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        raise RequestFailed("The body of the request is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise RequestFailed(
            f"The body of the request is not JSON: {error.msg} ({position})"
        ) from None
    except ValueError as error:
        raise RequestFailed(f"The body of the request is not JSON: {error}") from None
    except RecursionError:
        raise RequestFailed("The body of the request is nested too deeply") from None
    return value


def _reject_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


def _require_object(value: JsonValue, what: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise _type_error(what, "an object", value)
    return value


def _reject_unknown_members(request: JsonObject, *known: str) -> None:
    for member in request:
        if member not in known:
            names = ", ".join(f'"{name}"' for name in known)
            raise RequestFailed(
                f'Unrecognized field "{member}", not marked as ignorable (known: {names})'
            )


def _config(value: JsonValue, what: str) -> RawConfig:
    members = _require_object(value, what)
    return {
        name: None if member is None else _scalar_text(member, f'{what}["{name}"]')
        for name, member in members.items()
    }


def _scalar_text(value: JsonValue, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    raise _type_error(what, "a text, a number or a boolean", value)


def _initial_state(value: JsonValue) -> TargetState | None:
    if value is None:
        return None
    state = _INITIAL_STATES.get(_scalar_text(value, "initial_state").upper())
    if state is None:
        known = ", ".join(_INITIAL_STATES)
        raise RequestFailed(f"Unknown initial_state; it is one of {known}")
    return state


def _offsets(value: JsonValue) -> ConnectorOffset:
    item = _require_object(value, "an item of offsets")
    _reject_unknown_members(item, "partition", "offset")
    partition, offset = item.get("partition"), item.get("offset")
    return ConnectorOffset(
        partition=None if partition is None else _require_object(partition, "partition"),
        offset=None if offset is None else _require_object(offset, "offset"),
    )


def _type_error(what: str, wanted: str, value: JsonValue) -> RequestFailed:
    return RequestFailed(f"Cannot read {what}: {wanted} was expected, not {_type_name(value)}")


def _type_name(value: JsonValue) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, _NumberText | int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "an object" if isinstance(value, Mapping) else "a list"
