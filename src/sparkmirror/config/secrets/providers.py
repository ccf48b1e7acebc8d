"""Config providers: where the values behind `${provider:path:key}` come from.

Knows the three providers that come with Kafka, under Kafka's class names, and how a configuration
declares them: `config.providers` lists names the user chose,
`config.secrets.providers.<name>.class` says what each is, `config.secrets.providers.<name>.param.*`
sets it up. The environment is handed in.

A provider of one's own is an entry of `factories`: class name to a function of Setup.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.config.files import properties
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.secrets.variables import ConfigData, ConfigProvider, ConfigVariable
from sparkmirror.errors import ConfigError, ConfigFault, JavaRegexError
from sparkmirror.javaregex.pattern import compile_java_pattern

CONFIG_PROVIDERS_KEY = "config.providers"
ALLOWED_PATHS = "allowed.paths"
ALLOWLIST_PATTERN = "allowlist.pattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProviderContext:
    """What a provider is made from."""

    prefix: str
    """`config.secrets.providers.<name>.param.`, to name a parameter in a fault."""
    params: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)


ConfigProviderFactory = Callable[[ConfigProviderContext], ConfigProvider]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProviders:
    """The providers a configuration declares, by the names it gives them."""

    by_name: Mapping[str, ConfigProvider]
    notices: tuple[Notice, ...] = ()

    def lenient(self) -> ConfigProviders:
        """The same providers, but what cannot be read leaves the placeholder as it is."""
        by_name = {name: _LenientProvider(provider) for name, provider in self.by_name.items()}
        return ConfigProviders(by_name=by_name, notices=self.notices)

    def strict(self) -> ConfigProviders:
        """The same providers, but what they lack is an error: no placeholder of theirs stays."""
        by_name = {name: _StrictProvider(provider) for name, provider in self.by_name.items()}
        return ConfigProviders(by_name=by_name, notices=self.notices)


class _LenientProvider:
    """A provider that answers nothing where another would raise."""

    def __init__(self, provider: ConfigProvider) -> None:
        self._provider = provider

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        try:
            return self._provider.get(path, keys)
        except ConfigError as error:
            return ConfigData(values={}, missing_reason=str(error))


class _StrictProvider:
    """A provider that raises where another would answer nothing."""

    def __init__(self, provider: ConfigProvider) -> None:
        self._provider = provider

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        answer = self._provider.get(path, keys)
        missing = sorted(keys - answer.values.keys())
        if missing:
            raise ConfigError.of("", f"{', '.join(missing)}: {answer.missing_reason}")
        return answer


class _FailedProvider:
    """Stands for a provider that could not be made."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Refuse everything."""
        asked = ConfigVariable(self._name, path, min(keys, default=""))
        raise ConfigError.of(
            "", f"{CONFIG_PROVIDERS_KEY}.{self._name} has a fault, so {asked} is out of reach"
        )


class AllowedPaths:
    """The `allowed.paths` of a provider: nothing outside of them is read. None: no limit.

    Paths are compared as written, with `.` and `..` taken out but links not followed, as Kafka
    does: a mounted Kubernetes secret is made of links.
    """

    def __init__(self, setup: ConfigProviderContext) -> None:
        text = setup.params.get(ALLOWED_PATHS, "")
        self._allowed = tuple(Path(os.path.normpath(item.strip())) for item in text.split(","))
        if not text:
            self._allowed = ()
        key = setup.prefix + ALLOWED_PATHS
        faults = [
            ConfigFault(key, f"Invalid value {path} for configuration {key}: the path {fault}")
            for path in self._allowed
            if (fault := _path_fault(path))
        ]
        if faults:
            raise ConfigError(faults)

    def parse_untrusted_path(self, path: str) -> Path | None:
        """Clean a path; None if it may not be read."""
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

    def __init__(self, setup: ConfigProviderContext) -> None:
        self._paths = AllowedPaths(setup)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Read the file anew, so that a changed secret is seen."""
        if not path:
            return ConfigData(values={}, missing_reason="it names no file")
        file = self._paths.parse_untrusted_path(path)
        if file is None:
            return ConfigData(
                values={}, missing_reason=f"{ALLOWED_PATHS} does not allow to read {path}"
            )
        found = properties.load_properties(file, properties.PropertiesEncoding.UTF_8).mapping
        return ConfigData(
            values={key: found[key] for key in keys if key in found},
            missing_reason=f"{path} has no such key",
        )


class DirectoryConfigProvider:
    """`${dir:/path/to/folder:name}`: the whole text of one file, nothing trimmed."""

    def __init__(self, setup: ConfigProviderContext) -> None:
        self._paths = AllowedPaths(setup)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Read the files asked for. Anything but the plain name of a file is not there."""
        if not path:
            return ConfigData(values={}, missing_reason="it names no directory")
        folder = self._paths.parse_untrusted_path(path)
        if folder is None:
            return ConfigData(
                values={}, missing_reason=f"{ALLOWED_PATHS} does not allow to read {path}"
            )
        if not _check_path(folder, Path.is_dir):
            return ConfigData(values={}, missing_reason=f"{path} is not a directory")
        files = {key: folder / key for key in keys if key == Path(key).name}
        return ConfigData(
            values={
                key: _read_text(file)
                for key, file in files.items()
                if _check_path(file, Path.is_file)
            },
            missing_reason=f"{path} has no such file",
        )


def _check_path(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
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
    """`${env:NAME}`: a variable of the environment, if `allowlist.pattern` lets it through."""

    def __init__(self, setup: ConfigProviderContext) -> None:
        self._environment = setup.environment
        self._allowed = _allowlist_pattern(setup)

    def get(self, path: str, keys: frozenset[str]) -> ConfigData:
        """Look the names up. There is only one environment, so a path is a mistake."""
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


def _allowlist_pattern(setup: ConfigProviderContext) -> re.Pattern[str]:
    pattern = setup.params.get(ALLOWLIST_PATTERN, ".*")
    try:
        return compile_java_pattern(pattern)
    except JavaRegexError as error:
        key = setup.prefix + ALLOWLIST_PATTERN
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
    """Make the providers that a configuration declares. ConfigError lists all that cannot be."""
    providers, faults = try_create_providers(raw, environment, factories)
    if faults:
        raise ConfigError(faults)
    return providers


def try_create_providers(
    raw: Mapping[str, str],
    environment: Mapping[str, str],
    factories: Mapping[str, ConfigProviderFactory] = BUILT_IN_PROVIDERS,
) -> tuple[ConfigProviders, tuple[ConfigFault, ...]]:
    """The same for a review: one that cannot be made is a fault, and nothing behind it is read."""
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
