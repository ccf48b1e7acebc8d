"""The answers of Connect's REST API about configuration, as JSON values and texts.

The content comes from the tables and from `connector_config_validation`. Errors are exceptions;
`rest` maps them to status codes.
"""

from __future__ import annotations

from typing import Any, Final

from sparkmirror.config.definition.config_def import ConfigDef, ConfigKey, ConfigValue
from sparkmirror.config.definition.connector_config_validation import (
    CONNECTOR_CLASS,
    ConfigInfos,
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.plugin_versions import (
    satisfies_requirement,
    version_not_found_message,
)
from sparkmirror.config.definition.plugins import CONNECTOR_PLUGINS, find_plugin
from sparkmirror.config.definition.value_types import ClassResolver, Props, convert_to_string
from sparkmirror.config.tables.source_framework import SOURCE_ONLY
from sparkmirror.errors import BadRequest, NotFound

_SUFFIX: Final = "Connector"
_VALIDATE_ENDPOINT_HINT: Final = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


def connector_plugin_config(name: str, version: str | None = None) -> list[dict[str, Any]]:
    """Answer GET /connector-plugins/{name}/config: every key that the plug-in reads."""
    plugin = find_plugin(name)
    if plugin is None:
        raise NotFound(f"Unknown plugin {name}.")
    if version is not None and not satisfies_requirement(version):
        raise BadRequest(version_not_found_message(plugin.class_name, version))
    framework = SOURCE_ONLY if plugin in CONNECTOR_PLUGINS else ConfigDef()
    return [_config_key_info(key) for key in plugin.config_def + framework]


def validate_config_answer(
    name: str,
    props: Props,
    worker: WorkerCapabilities,
    classes: ClassResolver = resolve_class,
) -> dict[str, Any]:
    """Answer PUT /connector-plugins/{name}/config/validate. Faults are part of the answer."""
    included = props.get(CONNECTOR_CLASS)
    # Connect compares the ends of the names, so that a short name in the path fits a full one.
    if included is not None and not _without_suffix(included).endswith(_without_suffix(name)):
        raise BadRequest(f"Included connector type {included} does not match request type {name}")
    return config_infos_json(validate_connector_config(props, worker, classes))


def config_infos_json(validation: ConfigInfos) -> dict[str, Any]:
    """A validation in Connect's JSON form."""
    return {
        "name": validation.connector_class,
        "error_count": len(validation.errors),
        "groups": list(validation.groups),
        "configs": [
            {
                "definition": None if info.key is None else _config_key_info(info.key),
                "value": _config_value_info(info.value),
            }
            for info in validation.configs
        ],
    }


def invalid_config_message(validation: ConfigInfos) -> str | None:
    """The error message for a config with errors; None if it has none."""
    errors = validation.errors
    if not errors:
        return None
    head = f"Connector configuration is invalid and contains the following {len(errors)} error(s):"
    return "\n".join([head, *errors, _VALIDATE_ENDPOINT_HINT])


def _without_suffix(name: str) -> str:
    return name.removesuffix(_SUFFIX) or name


def _config_key_info(key: ConfigKey) -> dict[str, Any]:
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


def _config_value_info(value: ConfigValue) -> dict[str, Any]:
    return {
        "name": value.name,
        "value": convert_to_string(value.value),
        "recommended_values": list(value.recommended_values),
        "errors": list(value.errors),
        "visible": value.visible,
    }
