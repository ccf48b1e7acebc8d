"""Config providers: they supply the values of `${provider:path:key}`.

Has the three providers that come with Kafka, under Kafka's class names. A configuration declares
them: `config.providers` lists their names, `config.providers.<name>.class` gives the class of each,
`config.providers.<name>.param.*` its parameters. The caller passes the environment.

`factories` maps a class name to a function that creates a provider from a ConfigProviderContext.
"""

from __future__ import annotations

import logging
import os.path
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.config.files import properties
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.secrets.file_permissions import exposure_of
from sparkmirror.config.secrets.variables import ConfigData, ConfigProvider, ConfigVariable
from sparkmirror.config.warn_once import warn_once
from sparkmirror.errors import ConfigError, ConfigFault, JavaRegexError
from sparkmirror.javaregex.pattern import compile_java_pattern

log = logging.getLogger(__name__)

CONFIG_PROVIDERS_KEY = "config.providers"
ALLOWED_PATHS = "allowed.paths"
ALLOWLIST_PATTERN = "allowlist.pattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProviderContext:
    """The input of a provider's constructor."""

    prefix: str
    """`config.providers.<name>.param.`, to name a parameter in a fault."""
    params: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)


ConfigProviderFactory = Callable[[ConfigProviderContext], ConfigProvider]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProviders:
    """The providers of a configuration, by name."""

    by_name: Mapping[str, ConfigProvider]
    notices: tuple[Notice, ...] = ()

    def lenient(self) -> ConfigProviders:
        """The same providers, but a placeholder that cannot be read stays as text."""
        by_name = {name: _LenientProvider(provider) for name, provider in self.by_name.items()}
        return ConfigProviders(by_name=by_name, notices=self.notices)

    def strict(self) -> ConfigProviders:
        """The same providers, but a missing key is an error."""
        by_name = {name: _StrictProvider(provider) for name, provider in self.by_name.items()}
        return ConfigProviders(by_name=by_name, notices=self.notices)


class _LenientProvider:
    """Returns no values instead of raising."""

    def __init__(self, provider: ConfigProvider) -> None:
        self._provider = provider

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        try:
            return self._provider.get(path, keys)
        except ConfigError as error:
            return ConfigData(values={}, missing_reason=str(error))


class _StrictProvider:
    """Raises instead of leaving out a key."""

    def __init__(self, provider: ConfigProvider) -> None:
        self._provider = provider

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        data = self._provider.get(path, keys)
        missing = sorted(keys - data.values.keys())
        if missing:
            raise ConfigError.of("", f"{', '.join(missing)}: {data.missing_reason}")
        return data


class _FailedProvider:
    """Replaces a provider that could not be created. Raises at each use."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        variable = ConfigVariable(self._name, path, min(keys, default=""))
        raise ConfigError.of(
            "", f"{CONFIG_PROVIDERS_KEY}.{self._name} has a fault, so {variable} cannot be fetched"
        )


class AllowedPaths:
    """The `allowed.paths` of a provider: it reads nothing outside of them. Empty: no limit.

    Paths are compared without `.` and `..`, but with unresolved links, as in Kafka: a mounted
    Kubernetes secret consists of links.
    """

    def __init__(self, context: ConfigProviderContext) -> None:
        text = context.params.get(ALLOWED_PATHS, "")
        self._allowed = tuple(Path(os.path.normpath(item.strip())) for item in text.split(","))
        if not text:
            self._allowed = ()
        key = context.prefix + ALLOWED_PATHS
        faults = [
            ConfigFault(key, f"Invalid value {path} for configuration {key}: the path {fault}")
            for path in self._allowed
            if (fault := _path_fault(path))
        ]
        if faults:
            raise ConfigError(faults)

    def parse_untrusted_path(self, path: str) -> Path | None:
        """The path without `.` and `..`; None if it is not allowed."""
        if not self._allowed:
            return Path(path)
        clean = Path(os.path.normpath(path))
        return clean if any(clean.is_relative_to(allowed) for allowed in self._allowed) else None


def _path_fault(path: Path) -> str:
    if not path.is_absolute():
        return "is not absolute"
    return "" if path.exists() else "does not exist"


class FileConfigProvider:
    """`${file:/path/to/file.properties:key}`: a key of a .properties file in UTF-8."""

    def __init__(self, context: ConfigProviderContext) -> None:
        self._paths = AllowedPaths(context)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Read the file. Each call reads it again, so that a changed secret takes effect."""
        if not path:
            return ConfigData(values={}, missing_reason="it names no file")
        file = self._paths.parse_untrusted_path(path)
        if file is None:
            return ConfigData(
                values={}, missing_reason=f"{ALLOWED_PATHS} does not allow to read {path}"
            )
        entries = properties.load_properties(file, properties.PropertiesEncoding.UTF_8).mapping
        _warn_if_exposed(file)
        return ConfigData(
            values={key: entries[key] for key in keys if key in entries},
            missing_reason=f"{path} has no such key",
        )


class DirectoryConfigProvider:
    """`${dir:/path/to/folder:name}`: the whole text of one file, nothing trimmed."""

    def __init__(self, context: ConfigProviderContext) -> None:
        self._paths = AllowedPaths(context)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Read the files. A key that is not the plain name of a file is missing."""
        if not path:
            return ConfigData(values={}, missing_reason="it names no directory")
        folder = self._paths.parse_untrusted_path(path)
        if folder is None:
            return ConfigData(
                values={}, missing_reason=f"{ALLOWED_PATHS} does not allow to read {path}"
            )
        if not _check_path(folder, Path.is_dir):
            return ConfigData(values={}, missing_reason=f"{path} is not a directory")
        named = {key: folder / key for key in keys if key == Path(key).name}
        files = {key: file for key, file in named.items() if _check_path(file, Path.is_file)}
        for file in files.values():
            _warn_if_exposed(file)
        return ConfigData(
            values={key: _read_text(file) for key, file in files.items()},
            missing_reason=f"{path} has no such file",
        )


def _warn_if_exposed(file: Path) -> None:
    """Log a warning, once, if others may read a file with secrets."""
    exposure = exposure_of(file)
    if exposure:
        warn_once(log, f"{CONFIG_PROVIDERS_KEY}: {exposure}")


def _check_path(path: Path, check: Callable[[Path], bool]) -> bool:
    try:
        return check(path)
    except OSError as error:
        raise ConfigError.of("", f"{path} cannot be read: {error.strerror}") from None


def _read_text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError.of("", f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError.of("", f"{file} holds bytes that are not UTF-8") from None


class EnvVarConfigProvider:
    """`${env:NAME}`: a variable of the environment, if `allowlist.pattern` matches its name."""

    def __init__(self, context: ConfigProviderContext) -> None:
        self._environment = context.environment
        self._allowed = _allowlist_pattern(context)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """The variables with these names. Raises ConfigError if there is a path."""
        if path:
            message = f"the environment has no paths, but {path!r} was given; write ${{env:NAME}}"
            raise ConfigError.of("", message)
        return ConfigData(
            values={
                key: self._environment[key]
                for key in keys
                if key in self._environment and self._allowed.fullmatch(key)
            },
            missing_reason=(
                f"the environment has no such variable, or {ALLOWLIST_PATTERN} refuses it"
            ),
        )


def _allowlist_pattern(context: ConfigProviderContext) -> re.Pattern[str]:
    pattern = context.params.get(ALLOWLIST_PATTERN, ".*")
    try:
        return compile_java_pattern(pattern)
    except JavaRegexError as error:
        key = context.prefix + ALLOWLIST_PATTERN
        message = f"Invalid value {pattern} for configuration {key}: {error}"
        raise ConfigError.of(key, message) from None


_PACKAGE = "org.apache.kafka.common.config.provider."

BUILT_IN_PROVIDERS: Mapping[str, ConfigProviderFactory] = {
    f"{_PACKAGE}FileConfigProvider": FileConfigProvider,
    f"{_PACKAGE}DirectoryConfigProvider": DirectoryConfigProvider,
    f"{_PACKAGE}EnvVarConfigProvider": EnvVarConfigProvider,
}


def create_providers(
    raw: Mapping[str, str],
    environment: Mapping[str, str],
    factories: Mapping[str, ConfigProviderFactory] = BUILT_IN_PROVIDERS,
) -> ConfigProviders:
    """Create the providers that a configuration declares. Raises ConfigError with all faults."""
    providers, faults = try_create_providers(raw, environment, factories)
    if faults:
        raise ConfigError(faults)
    return providers


def try_create_providers(
    raw: Mapping[str, str],
    environment: Mapping[str, str],
    factories: Mapping[str, ConfigProviderFactory] = BUILT_IN_PROVIDERS,
) -> tuple[ConfigProviders, tuple[ConfigFault, ...]]:
    """The same for a validation: returns the faults. A provider with a fault raises when used."""
    by_name: dict[str, ConfigProvider] = {}
    notices: list[Notice] = []
    faults: list[ConfigFault] = []
    for name in filter(None, map(str.strip, raw.get(CONFIG_PROVIDERS_KEY, "").split(","))):
        class_key = f"{CONFIG_PROVIDERS_KEY}.{name}.class"
        if class_key not in raw:
            message = f"names {name!r}, but {class_key} is not set: its placeholders stay as text"
            notices.append(
                Notice(kind=NoticeKind.PROVIDER, message=message, key=CONFIG_PROVIDERS_KEY)
            )
            continue
        try:
            factory = _find_factory(raw[class_key].strip(), class_key, factories)
            by_name[name] = factory(_context(name, raw, environment))
        except ConfigError as error:
            faults.extend(error.faults)
            by_name[name] = _FailedProvider(name)
    return ConfigProviders(by_name=by_name, notices=tuple(notices)), tuple(faults)


def _find_factory(
    class_name: str, class_key: str, factories: Mapping[str, ConfigProviderFactory]
) -> ConfigProviderFactory:
    for known, factory in factories.items():
        if class_name in (known, known.rpartition(".")[2]):
            return factory
    message = (
        f"Invalid value {class_name} for configuration {class_key}: "
        f"Class {class_name} could not be found. Known are: {', '.join(factories)}"
    )
    raise ConfigError.of(class_key, message)


def _context(
    name: str, raw: Mapping[str, str], environment: Mapping[str, str]
) -> ConfigProviderContext:
    prefix = f"{CONFIG_PROVIDERS_KEY}.{name}.param."
    params = {
        key.removeprefix(prefix): value for key, value in raw.items() if key.startswith(prefix)
    }
    return ConfigProviderContext(prefix=prefix, params=params, environment=environment)
