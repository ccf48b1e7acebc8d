"""Connect's `Values.convertToString`: values as the text of a header."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import tzinfo

from sparkmirror.transforms.data.java_text import to_java_string
from sparkmirror.transforms.data.java_values import ConnectValue, Date
from sparkmirror.transforms.data.logical_types import MS_PER_DAY
from sparkmirror.transforms.data.struct import Struct
from sparkmirror.transforms.dates.simple_date_format import SimpleDateFormat


def convert_to_string(value: ConnectValue, zone: tzinfo) -> str:
    """The text of a value. Dates are written in the time zone."""
    if isinstance(value, str):
        return value
    return _text(value, zone)


def date_text(value: Date, zone: tzinfo) -> str:
    """A date as time, date or timestamp: which of them, the value in UTC decides."""
    if value.time_ms < MS_PER_DAY:
        pattern = "HH:mm:ss.SSS'Z'"
    elif value.time_ms % MS_PER_DAY == 0:
        pattern = "yyyy-MM-dd"
    else:
        pattern = "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"
    return SimpleDateFormat(pattern, zone).format(value.time_ms)


def _embedded(value: ConnectValue, zone: tzinfo) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    return _text(value, zone)


def _text(value: ConnectValue, zone: tzinfo) -> str:
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case list():
            return f"[{','.join(_embedded(item, zone) for item in value)}]"
        case dict():
            return _object_text(value.items(), zone)
        case Struct():
            return _object_text(((field.name, item) for field, item in value.entries()), zone)
        case Date():
            return date_text(value, zone)
        case _:
            return to_java_string(value, zone)


def _object_text(entries: Iterable[tuple[ConnectValue, ConnectValue]], zone: tzinfo) -> str:
    pairs = (f"{_embedded(key, zone)}:{_embedded(value, zone)}" for key, value in entries)
    return f"{{{','.join(pairs)}}}"
