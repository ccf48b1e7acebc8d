"""JSON schemas of the bodies of requests and answers, by name. OpenAPI 3.1 uses JSON Schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from sparkmirror.mirror.connect_topics.connect_json import JsonValue

Schema: TypeAlias = Mapping[str, JsonValue]

_TEXT: Final[Schema] = {"type": "string"}
_TEXT_OR_NULL: Final[Schema] = {"type": ["string", "null"]}
_NUMBER: Final[Schema] = {"type": "integer"}
_NUMBER_OR_NULL: Final[Schema] = {"type": ["integer", "null"]}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_SCALAR: Final[Schema] = {"type": ["string", "number", "boolean", "null"]}
_OBJECT_OR_NULL: Final[Schema] = {"type": ["object", "null"]}


def reference(name: str) -> Schema:
    """Return a reference to a schema of this module."""
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def map_of(values: Schema) -> Schema:
    """Return the schema of an object whose members all have one schema."""
    return {"type": "object", "additionalProperties": values}


def _object(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }


def _request(members: Mapping[str, Schema]) -> Schema:
    """An object whose unknown members are refused."""
    return {"type": "object", "properties": {**members}, "additionalProperties": False}


def _enum(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


def _in_any_case(*words: str) -> str:
    """Return a pattern for the words. ECMA's patterns have no flag for upper and lower case."""
    spelled = ("".join(f"[{letter}{letter.lower()}]" for letter in word) for word in words)
    return f"^({'|'.join(spelled)})$"


_STATE: Final = {"state": _TEXT, "worker_id": _TEXT}
_STATE_EXTRA: Final = {"version": _TEXT_OR_NULL, "trace": _TEXT}
_TYPE: Final = _enum("source", "sink", "unknown")

_UNREACHABLE: Final[Mapping[str, Schema]] = {
    "unreachable_workers": {"type": "object", "additionalProperties": {"type": "string"}}
}
"""Workers of the group that did not answer, with the reason. Left out if all did."""

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Error": _object({"error_code": _NUMBER, "message": _TEXT}),
    "Message": _object({"message": _TEXT}),
    "ServerInfo": _object({"version": _TEXT, "commit": _TEXT, "kafka_cluster_id": _TEXT_OR_NULL}),
    "WorkerStatus": _object(
        {"status": _enum("healthy", "degraded", "starting", "unhealthy"), "message": _TEXT}
    ),
    "Metrics": _TEXT,
    "Names": array_of(_TEXT),
    "Connectors": {
        "oneOf": [
            reference("Names"),
            map_of(
                _object(
                    {},
                    {
                        "info": reference("ConnectorInfo"),
                        "status": reference("ConnectorStateInfo"),
                    },
                )
            ),
        ]
    },
    "ConnectorConfig": map_of(_TEXT_OR_NULL),
    "NewConnectorConfig": map_of(_SCALAR),
    "CreateConnectorRequest": _request(
        {
            "name": _SCALAR,
            "config": reference("NewConnectorConfig"),
            "initial_state": {
                "type": ["string", "null"],
                "pattern": _in_any_case("RUNNING", "PAUSED", "STOPPED"),
            },
        }
    ),
    "ConnectorTaskId": _object({"connector": _TEXT, "task": _NUMBER}),
    "ConnectorInfo": _object(
        {
            "name": _TEXT,
            "config": reference("ConnectorConfig"),
            "tasks": array_of(reference("ConnectorTaskId")),
            "type": _TYPE,
        }
    ),
    "ConnectorState": _object(_STATE, _STATE_EXTRA),
    "TaskState": _object({"id": _NUMBER, **_STATE}, _STATE_EXTRA),
    "ConnectorStateInfo": _object(
        {
            "name": _TEXT,
            "connector": reference("ConnectorState"),
            "tasks": array_of(reference("TaskState")),
            "type": _TYPE,
        }
    ),
    "TaskInfos": array_of(
        _object({"id": reference("ConnectorTaskId"), "config": reference("ConnectorConfig")})
    ),
    "ActiveTopics": map_of(_object({"topics": reference("Names")})),
    "ConnectorOffsets": _object(
        {"offsets": array_of(_object({"partition": _OBJECT_OR_NULL, "offset": _OBJECT_OR_NULL}))}
    ),
    "AlterOffsetsRequest": _request(
        {"offsets": array_of(_request({"partition": _OBJECT_OR_NULL, "offset": _OBJECT_OR_NULL}))}
    ),
    "PluginInfos": array_of(_object({"class": _TEXT, "type": _TEXT}, {"version": _TEXT_OR_NULL})),
    "ConfigKeyInfo": _object(
        {
            "name": _TEXT,
            "type": _TEXT,
            "required": _BOOLEAN,
            "default_value": _TEXT_OR_NULL,
            "importance": _TEXT,
            "documentation": _TEXT,
            "group": _TEXT_OR_NULL,
            "order_in_group": _NUMBER,
            "width": _TEXT,
            "display_name": _TEXT_OR_NULL,
            "dependents": array_of(_TEXT),
        }
    ),
    "ConfigKeyInfos": array_of(reference("ConfigKeyInfo")),
    "ConfigInfos": _object(
        {
            "name": _TEXT,
            "error_count": _NUMBER,
            "groups": array_of(_TEXT),
            "configs": array_of(
                _object(
                    {
                        "definition": {"oneOf": [reference("ConfigKeyInfo"), {"type": "null"}]},
                        "value": _object(
                            {
                                "name": _TEXT,
                                "value": _TEXT_OR_NULL,
                                "recommended_values": array_of(_TEXT_OR_NULL),
                                "errors": array_of(_TEXT),
                                "visible": _BOOLEAN,
                            }
                        ),
                    }
                )
            ),
        }
    ),
    "LoggerLevel": _object({"level": _TEXT_OR_NULL, "last_modified": _NUMBER_OR_NULL}),
    "LoggerLevels": map_of(reference("LoggerLevel")),
    "SetLevelRequest": {"type": "object", "properties": {"level": _SCALAR}},
    "Partitions": _object(
        {
            "name": _TEXT,
            "records": _NUMBER,
            "bytes": _NUMBER,
            "lag": _NUMBER_OR_NULL,
            "partitions": array_of(
                _object(
                    {
                        "topic": _TEXT,
                        "partition": _NUMBER,
                        "remote_topic": _TEXT,
                        "task": _NUMBER,
                        "state": _enum(
                            *("waiting", "leased", "doubtful", "held"), *("paused", "stopped")
                        ),
                        "position": _NUMBER_OR_NULL,
                        "end": _NUMBER_OR_NULL,
                        "lag": _NUMBER_OR_NULL,
                        "records": _NUMBER,
                        "bytes": _NUMBER,
                        "reason": _TEXT,
                        "delivery": _enum("", "sequenced", "exactly-once", "at-least-once"),
                        "filtered": _NUMBER,
                        "skipped": _NUMBER,
                        "dead_letters": _NUMBER,
                    }
                )
            ),
        },
        _UNREACHABLE,
    ),
    "Events": _object(
        {
            "name": _TEXT,
            "events": array_of(
                _object(
                    {
                        "time": {"type": "string", "format": "date-time"},
                        "kind": _TEXT,
                        "topic": _TEXT,
                        "partition": _NUMBER,
                        "text": _TEXT,
                        "lost_from": _NUMBER_OR_NULL,
                        "lost_to": _NUMBER_OR_NULL,
                    }
                )
            ),
        },
        _UNREACHABLE,
    ),
    "Groups": _object(
        {
            "name": _TEXT,
            "groups": array_of(
                _object(
                    {
                        "group": _TEXT,
                        "topic": _TEXT,
                        "partition": _NUMBER,
                        "remote": {
                            "oneOf": [
                                _object({"topic": _TEXT, "partition": _NUMBER}),
                                {"type": "null"},
                            ]
                        },
                        "upstream": _NUMBER_OR_NULL,
                        "downstream": _NUMBER_OR_NULL,
                        "translated": _TEXT,
                        "checkpoint": _TEXT,
                        "written": _TEXT,
                    }
                )
            ),
        },
        {"reason": _TEXT, **_UNREACHABLE},
    ),
    "OpenApi": _object({"openapi": _TEXT, "info": {"type": "object"}, "paths": {"type": "object"}}),
}
