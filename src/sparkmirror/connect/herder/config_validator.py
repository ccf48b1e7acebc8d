"""Validates configs before they are stored, and lists plug-ins.

Values of placeholders are fetched for the validation and never shown: an answer contains the
placeholder, and an error about a fetched value leaves the value out. Any thread may call.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sparkmirror.config.definition import rest_answers
from sparkmirror.config.definition.connector_config_validation import (
    CONNECTOR_CLASS,
    ConfigInfo,
    ConfigInfos,
    WorkerCapabilities,
    validate_connector_config,
)
from sparkmirror.config.definition.plugin_versions import PLUGIN_VERSION
from sparkmirror.config.definition.plugins import CONNECTOR_PLUGINS, PLUGINS, find_plugin
from sparkmirror.config.definition.value_types import Props
from sparkmirror.config.files.deprecated_keys import migrate_deprecated_keys
from sparkmirror.config.secrets.variables import ConfigProvider, expand_variables, redact_fault
from sparkmirror.connect.runtime.status.stack_traces import CONNECT_EXCEPTION
from sparkmirror.errors import BadRequest, ConfigError, ConfigFault, RequestFailed

log = logging.getLogger(__name__)

_MISMATCH: Final = "Included connector type "
_BAD_REQUEST: Final = "org.apache.kafka.connect.runtime.rest.errors.BadRequestException: "
_CONFIG: Final = "org.apache.kafka.common.config.ConfigException: "


class ConfigValidator:
    """Validates with the worker's capabilities and config providers."""

    def __init__(
        self, capabilities: WorkerCapabilities, providers: Mapping[str, ConfigProvider]
    ) -> None:
        self._capabilities = capabilities
        self._providers = providers

    def require_valid(self, config: Props) -> None:
        """Raise BadRequest with every error, unless the config is valid."""
        migrated = migrate_deprecated_keys(config)
        for notice in migrated.notices:
            log.warning("%s", notice)
        try:
            expanded = self._expand(migrated.props)
        except ConfigError as error:
            raise RequestFailed(str(error)) from error
        try:
            validation = validate_connector_config(expanded, self._capabilities)
        except BadRequest:
            raise BadRequest(self._class_error(migrated.props)) from None
        refusal = rest_answers.invalid_config_message(
            _with_placeholders(validation, migrated.props, expanded)
        )
        if refusal is not None:
            raise BadRequest(refusal)

    def validate(self, plugin: str, config: Props) -> dict[str, Any]:
        """Return Connect's validate answer: every key with its errors."""
        written = migrate_deprecated_keys(config).props
        try:
            expanded = self._expand(written)
        except ConfigError as error:
            raise RequestFailed(f"{_CONFIG}{error}") from error
        try:
            result = rest_answers.validate_config_answer(plugin, expanded, self._capabilities)
        except BadRequest as error:
            if str(error).startswith(_MISMATCH):
                class_name = written.get(CONNECTOR_CLASS)
                raise BadRequest(
                    f"{_MISMATCH}{class_name} does not match request type {plugin}"
                ) from None
            named = expanded.get(CONNECTOR_CLASS)
            is_unknown = named is not None and find_plugin(named) is None
            cause = f"{CONNECT_EXCEPTION}: " if is_unknown else ""
            raise RequestFailed(f"{_BAD_REQUEST}{cause}{self._class_error(written)}") from None
        for entry in result["configs"]:
            _restore_placeholders(entry["value"], written, expanded)
        return result

    def _class_error(self, written: Props) -> str:
        """Return the error about the class, with the placeholder instead of the fetched value."""
        try:
            validate_connector_config(written, self._capabilities)
        except BadRequest as error:
            return str(error)
        return f"{written.get(CONNECTOR_CLASS)} is not the name of a connector class"

    def _expand(self, config: Props) -> Props:
        present = {key: value for key, value in config.items() if value is not None}
        values = expand_variables(present, self._providers).values
        return {key: values.get(key) for key in config}


def list_plugins(*, connectors_only: bool) -> Sequence[Mapping[str, Any]]:
    """Return the plug-ins of this worker."""
    offered = CONNECTOR_PLUGINS if connectors_only else PLUGINS
    return [
        {"class": plugin.class_name, "type": plugin.type.value, "version": PLUGIN_VERSION}
        for plugin in offered
    ]


def _with_placeholders(validation: ConfigInfos, written: Props, expanded: Props) -> ConfigInfos:
    findings = tuple(
        ConfigInfo(
            finding.key,
            replace(
                finding.value,
                errors=_error_text(finding.value.name, finding.value.errors, written, expanded),
            ),
        )
        for finding in validation.configs
    )
    return replace(validation, configs=findings)


def _restore_placeholders(value: dict[str, Any], written: Props, expanded: Props) -> None:
    """Replace the fetched value by its placeholder in one entry of the answer."""
    name = value["name"]
    value["errors"] = list(_error_text(name, value["errors"], written, expanded))
    if value["value"] is not None and written.get(name) != expanded.get(name):
        value["value"] = written.get(name)


def _error_text(
    name: str, errors: Sequence[str], written: Props, expanded: Props
) -> tuple[str, ...]:
    raw = {key: text for key, text in written.items() if text is not None}
    fetched = {key: text for key, text in expanded.items() if text is not None}
    return tuple(redact_fault(ConfigFault(name, error), raw, fetched).message for error in errors)
