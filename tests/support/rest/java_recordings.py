"""Recorded HTTP exchanges with a Connect worker. Shortened bodies are expanded again."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tests.support.golden import golden_lines


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedExchange:
    """One request and its answer."""

    file: str
    seq: int
    name: str
    method: str
    path: str
    request: str | None
    status: int
    body: Any
    request_headers: dict[str, str]
    response_headers: dict[str, str]
    """By name in lower case, without Date and Server."""
    raw_body: str | None
    """The body as it was sent, unless the recording has shortened it."""

    @property
    def plugin(self) -> str:
        """The plug-in that the path names."""
        return self.path.split("?")[0].split("/")[2]

    @property
    def connector(self) -> str:
        """The connector to be created or changed: in the body of a POST, else in the path."""
        if self.method == "POST":
            return str(json.loads(self.request or "{}").get("name", ""))
        return self.path.split("/")[2]

    @property
    def config(self) -> dict[str, str | None]:
        """The config that was sent, coerced to text as Connect does."""
        sent = json.loads(self.request or "{}", parse_float=str, parse_int=str)
        return {key: _text(value) for key, value in sent.get("config", sent).items()}

    @property
    def message(self) -> str:
        """The message of an error."""
        return str(self.body["message"])


def recorded_exchanges(file: str) -> list[RecordedExchange]:
    """All exchanges of one recorded scenario, in order."""
    lines = golden_lines(f"rest/{file}.jsonl")
    return [_parse_exchange(file, number, line) for number, line in enumerate(lines, 1)]


def _parse_exchange(file: str, number: int, line: dict[str, Any]) -> RecordedExchange:
    return RecordedExchange(
        file=file,
        seq=line.get("seq", number),
        name=line.get("name", "startup"),
        method=line["method"],
        path=line["path"],
        request=line.get("request_body"),
        status=line["status"],
        body=_parse_body(line),
        request_headers=line.get("request_headers", {}),
        response_headers={name.lower(): value for name, value in line["response_headers"]},
        raw_body=line.get("body"),
    )


def _parse_body(line: dict[str, Any]) -> Any:
    if "body_reduced" in line:
        return _expanded_body(line)
    if "body_same_as" in line:
        return _plugin_configs()[line["body_same_as"]]
    try:
        return json.loads(line.get("body") or "null")
    except json.JSONDecodeError:
        return line["body"]


def _expanded_body(line: dict[str, Any]) -> Any:
    definitions = _definitions()[line["body_reduced_against"].rpartition(" ")[2]]
    body = deepcopy(line["body_reduced"])
    for config in body["configs"]:
        if isinstance(config["definition"], str):
            config["definition"] = definitions[config["definition"].removeprefix("=")]
    return body


@lru_cache(maxsize=1)
def _plugin_configs() -> dict[str, Any]:
    """The long bodies that other recordings refer to, by name and path."""
    return {
        f"{line['name']} {line['path']}": json.loads(line["body"])
        for line in golden_lines("rest/02-plugin-config.jsonl")
        if line["name"] == "plugin-config-full-name"
    }


@lru_cache(maxsize=1)
def _definitions() -> dict[str, dict[str, Any]]:
    """Each connector's definitions, from its recording `validate-good`."""
    return {
        line["path"].split("/")[2]: {
            config["definition"]["name"]: config["definition"]
            for config in json.loads(line["body"])["configs"]
        }
        for line in golden_lines("rest/02-plugin-config.jsonl")
        if line["name"] == "validate-good"
    }


def _text(value: str | bool | None) -> str | None:
    return str(value).lower() if isinstance(value, bool) else value
