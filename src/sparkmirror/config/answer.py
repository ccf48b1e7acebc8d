"""What Connect's REST API says about configuration, as JSON values and texts.

Knows the shape of the answers; what is in them comes from the tables and from `validation`. Knows
no status code: an error here is an exception, which the REST room turns into one.
"""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.config.classes import known_class
from sparkmirror.config.definition import ConfigDef, ConfigValue, Key
from sparkmirror.config.plugins import CONNECTOR_PLUGINS, find_plugin
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.config.validation import (
    CONNECTOR_CLASS,
    Validation,
    WorkerTerms,
    validate_connector,
)
from sparkmirror.config.value import ClassResolver, Props, render
from sparkmirror.config.versions import meets, not_found
from sparkmirror.errors import BadRequest, NotFound

_SUFFIX: Final = "Connector"
_SEE_ALSO: Final = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


def plugin_config(name: str, version: str | None = None) -> list[dict[str, Any]]:
    """Answer GET /connector-plugins/{name}/config: every key that the plug-in reads."""
    plugin = find_plugin(name)
    if plugin is None:
        raise NotFound(f"Unknown plugin {name}.")
    if version is not None and not meets(version):
        raise BadRequest(not_found(plugin.class_name, version))
    framework = SOURCE_ONLY if plugin in CONNECTOR_PLUGINS else ConfigDef()
    return [_key(key) for key in plugin.table + framework]


def validate_answer(
    name: str,
    props: Props,
    worker: WorkerTerms,
    classes: ClassResolver = known_class,
) -> dict[str, Any]:
    """Answer PUT /connector-plugins/{name}/config/validate. Faults are part of the answer."""
    included = props.get(CONNECTOR_CLASS)
    # Connect compares the ends of the names, so that a short name in the path fits a full one.
    if included is not None and not _stem(included).endswith(_stem(name)):
        raise BadRequest(f"Included connector type {included} does not match request type {name}")
    return as_json(validate_connector(props, worker, classes))


def as_json(validation: Validation) -> dict[str, Any]:
    """Write a validation as Connect does."""
    return {
        "name": validation.connector_class,
        "error_count": len(validation.errors),
        "groups": list(validation.groups),
        "configs": [
            {
                "definition": None if finding.key is None else _key(finding.key),
                "value": _value(finding.value),
            }
            for finding in validation.findings
        ],
    }


def refusal(validation: Validation) -> str | None:
    """Say why a config cannot be created or updated; None if it can."""
    errors = validation.errors
    if not errors:
        return None
    head = f"Connector configuration is invalid and contains the following {len(errors)} error(s):"
    return "\n".join([head, *errors, _SEE_ALSO])


def _stem(name: str) -> str:
    return name.removesuffix(_SUFFIX) or name


def _key(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type.value,
        "required": key.required,
        "default_value": key.default_text,
        "importance": key.importance.value,
        "documentation": key.doc,
        "group": key.group,
        "order_in_group": key.order,
        "width": key.width.value,
        "display_name": key.display_name,
        "dependents": list(key.dependents),
    }


def _value(value: ConfigValue) -> dict[str, Any]:
    return {
        "name": value.name,
        "value": render(value.value),
        "recommended_values": list(value.recommended_values),
        "errors": list(value.errors),
        "visible": value.visible,
    }
