"""Config providers by their names and classes: those of Kafka and those of Strimzi. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY

DIRECTORY: Final = "dir"
ENVIRONMENT: Final = "env"
FILE: Final = "file"
SECRETS: Final = "secrets"
CONFIG_MAPS: Final = "configmaps"
_PACKAGE: Final = "org.apache.kafka.common.config.provider."
PROVIDER_CLASSES: Final = {
    DIRECTORY: f"{_PACKAGE}DirectoryConfigProvider",
    ENVIRONMENT: f"{_PACKAGE}EnvVarConfigProvider",
    FILE: f"{_PACKAGE}FileConfigProvider",
}
"""The config providers of Kafka, by the name that an imported file gives them."""
_KINDS_OF_CLASSES: Final = {
    **{name.removeprefix(_PACKAGE): kind for kind, name in PROVIDER_CLASSES.items()},
    "KubernetesSecretConfigProvider": SECRETS,
    "KubernetesConfigMapConfigProvider": CONFIG_MAPS,
}
_KINDS_OF_NAMES: Final = {
    "strimzidir": DIRECTORY,
    "strimzienv": ENVIRONMENT,
    "strimzifile": FILE,
    "strimzisecrets": SECRETS,
    "dir": DIRECTORY,
    "directory": DIRECTORY,
    "env": ENVIRONMENT,
    "file": FILE,
    "secrets": SECRETS,
    "configmaps": CONFIG_MAPS,
}
"""Providers that Strimzi always has, and the usual names of the others."""


def kind_of_class(class_name: str) -> str:
    """Return the kind of a provider's class; an empty text if it is unknown."""
    return _KINDS_OF_CLASSES.get(class_name.strip().rpartition(".")[2], "")


def provider_kinds(config: Mapping[str, str]) -> dict[str, str]:
    """Return what each provider name means: those that a config declares, and the usual ones."""
    declared = {
        key.removeprefix(f"{CONFIG_PROVIDERS_KEY}.").removesuffix(".class"): kind_of_class(value)
        for key, value in config.items()
        if key.startswith(f"{CONFIG_PROVIDERS_KEY}.") and key.endswith(".class")
    }
    return _KINDS_OF_NAMES | declared
