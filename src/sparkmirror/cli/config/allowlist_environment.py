"""The environment of a process with what its operator's file allows to connectors."""

from __future__ import annotations

from collections.abc import Mapping

from sparkmirror.config.plugin_module_allowlist import with_plugin_modules
from sparkmirror.security.oauthbearer.allowed_resources import with_allowed_resources


def operator_environment(
    properties: Mapping[str, str], environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment with the lists of a worker's file: logins and plug-ins read them."""
    return with_plugin_modules(properties, with_allowed_resources(properties, environment))
