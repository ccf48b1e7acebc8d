"""Config providers: where the values behind `${provider:path:key}` come from.

Knows the three providers that come with Kafka, under Kafka's class names, and how a configuration
declares them: `config.providers` lists names the user chose, `config.providers.<name>.class` says
what each is, `config.providers.<name>.param.*` sets it up. The environment is handed in.

A provider of one's own is an entry of `factories`: class name to a function of Setup.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sparkmirror.config import properties
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.variables import Answer, Provider, Variable
from sparkmirror.errors import ConfigError, Fault, JavaRegexError
from sparkmirror.javaregex import compile_java

NAMES = "config.providers"
ALLOWED_PATHS = "allowed.paths"
ALLOWLIST_PATTERN = "allowlist.pattern"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a provider is made from."""

    prefix: str
    """`config.providers.<name>.param.`, to name a parameter in a fault."""
    params: Mapping[str, str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)


Factory = Callable[[Setup], Provider]


@dataclass(frozen=True, slots=True, kw_only=True)
class Providers:
    """The providers a configuration declares, by the names it gives them."""

    by_name: Mapping[str, Provider]
    notices: tuple[Notice, ...] = ()

    def forgiving(self) -> Providers:
        """The same providers, but what cannot be read leaves the placeholder as it is."""
        by_name = {name: _Forgiving(provider) for name, provider in self.by_name.items()}
        return Providers(by_name=by_name, notices=self.notices)

    def demanding(self) -> Providers:
        """The same providers, but what they lack is an error: no placeholder of theirs stays."""
        by_name = {name: _Demanding(provider) for name, provider in self.by_name.items()}
        return Providers(by_name=by_name, notices=self.notices)


class _Forgiving:
    """A provider that answers nothing where another would raise."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        try:
            return self._provider.get(path, keys)
        except ConfigError as error:
            return Answer(values={}, lacking=str(error))


class _Demanding:
    """A provider that raises where another would answer nothing."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        answer = self._provider.get(path, keys)
        missing = sorted(keys - answer.values.keys())
        if missing:
            raise ConfigError.of("", f"{', '.join(missing)}: {answer.lacking}")
        return answer


class _Unmade:
    """Stands for a provider that could not be made."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        """Refuse everything."""
        asked = Variable(self._name, path, min(keys, default=""))
        raise ConfigError.of("", f"{NAMES}.{self._name} has a fault, so {asked} is out of reach")


class AllowedPaths:
    """The `allowed.paths` of a provider: nothing outside of them is read. None: no limit.

    Paths are compared as written, with `.` and `..` taken out but links not followed, as Kafka
    does: a mounted Kubernetes secret is made of links.
    """

    def __init__(self, setup: Setup) -> None:
        text = setup.params.get(ALLOWED_PATHS, "")
        self._allowed = tuple(Path(os.path.normpath(item.strip())) for item in text.split(","))
        if not text:
            self._allowed = ()
        key = setup.prefix + ALLOWED_PATHS
        faults = [
            Fault(key, f"Invalid value {path} for configuration {key}: the path {fault}")
            for path in self._allowed
            if (fault := _path_fault(path))
        ]
        if faults:
            raise ConfigError(faults)

    def admit(self, path: str) -> Path | None:
        """Clean a path; None if it may not be read."""
        if not self._allowed:
            return Path(path)
        clean = Path(os.path.normpath(path))
        return clean if any(clean.is_relative_to(allowed) for allowed in self._allowed) else None


def _path_fault(path: Path) -> str:
    if not path.is_absolute():
        return "is not absolute"
    return "" if path.exists() else "does not exist"


class FileProvider:
    """`${file:/path/to/file.properties:key}`: a key of a .properties file in UTF-8."""

    def __init__(self, setup: Setup) -> None:
        self._paths = AllowedPaths(setup)

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        """Read the file anew, so that a changed secret is seen."""
        if not path:
            return Answer(values={}, lacking="it names no file")
        file = self._paths.admit(path)
        if file is None:
            return Answer(values={}, lacking=f"{ALLOWED_PATHS} does not allow to read {path}")
        found = properties.load(file, properties.Encoding.UTF_8).mapping
        return Answer(
            values={key: found[key] for key in keys if key in found},
            lacking=f"{path} has no such key",
        )


class DirectoryProvider:
    """`${dir:/path/to/folder:name}`: the whole text of one file, nothing trimmed."""

    def __init__(self, setup: Setup) -> None:
        self._paths = AllowedPaths(setup)

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        """Read the files asked for. Anything but the plain name of a file is not there."""
        if not path:
            return Answer(values={}, lacking="it names no directory")
        folder = self._paths.admit(path)
        if folder is None:
            return Answer(values={}, lacking=f"{ALLOWED_PATHS} does not allow to read {path}")
        if not _is(folder, Path.is_dir):
            return Answer(values={}, lacking=f"{path} is not a directory")
        files = {key: folder / key for key in keys if key == Path(key).name}
        return Answer(
            values={key: _text(file) for key, file in files.items() if _is(file, Path.is_file)},
            lacking=f"{path} has no such file",
        )


def _is(path: Path, kind: Callable[[Path], bool]) -> bool:
    try:
        return kind(path)
    except OSError as error:
        raise ConfigError.of("", f"{path} cannot be read: {error.strerror}") from None


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except OSError as error:
        raise ConfigError.of("", f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError.of("", f"{file} holds bytes that are not UTF-8") from None


class EnvironmentProvider:
    """`${env:NAME}`: a variable of the environment, if `allowlist.pattern` lets it through."""

    def __init__(self, setup: Setup) -> None:
        self._environment = setup.environment
        self._allowed = _pattern(setup)

    def get(self, path: str, keys: frozenset[str]) -> Answer:
        """Look the names up. There is only one environment, so a path is a mistake."""
        if path:
            message = f"the environment has no paths, but {path!r} was given; write ${{env:NAME}}"
            raise ConfigError.of("", message)
        return Answer(
            values={
                key: self._environment[key]
                for key in keys
                if key in self._environment and self._allowed.fullmatch(key)
            },
            lacking=f"the environment has no such variable, or {ALLOWLIST_PATTERN} refuses it",
        )


def _pattern(setup: Setup) -> re.Pattern[str]:
    pattern = setup.params.get(ALLOWLIST_PATTERN, ".*")
    try:
        return compile_java(pattern)
    except JavaRegexError as error:
        key = setup.prefix + ALLOWLIST_PATTERN
        message = f"Invalid value {pattern} for configuration {key}: {error}"
        raise ConfigError.of(key, message) from None


_PACKAGE = "org.apache.kafka.common.config.provider."

BUILT_IN: Mapping[str, Factory] = {
    f"{_PACKAGE}FileConfigProvider": FileProvider,
    f"{_PACKAGE}DirectoryConfigProvider": DirectoryProvider,
    f"{_PACKAGE}EnvVarConfigProvider": EnvironmentProvider,
}


def declared(
    raw: Mapping[str, str],
    environment: Mapping[str, str],
    factories: Mapping[str, Factory] = BUILT_IN,
) -> Providers:
    """Make the providers that a configuration declares. ConfigError lists all that cannot be."""
    providers, faults = surveyed(raw, environment, factories)
    if faults:
        raise ConfigError(faults)
    return providers


def surveyed(
    raw: Mapping[str, str],
    environment: Mapping[str, str],
    factories: Mapping[str, Factory] = BUILT_IN,
) -> tuple[Providers, tuple[Fault, ...]]:
    """The same for a review: one that cannot be made is a fault, and nothing behind it is read."""
    by_name: dict[str, Provider] = {}
    notices: list[Notice] = []
    faults: list[Fault] = []
    for name in filter(None, map(str.strip, raw.get(NAMES, "").split(","))):
        class_key = f"{NAMES}.{name}.class"
        if class_key not in raw:
            message = f"names {name!r}, but {class_key} is not set: its placeholders stay as text"
            notices.append(Notice(kind=NoticeKind.PROVIDER, message=message, key=NAMES))
            continue
        try:
            factory = _factory(raw[class_key].strip(), class_key, factories)
            by_name[name] = factory(_setup(name, raw, environment))
        except ConfigError as error:
            faults.extend(error.faults)
            by_name[name] = _Unmade(name)
    return Providers(by_name=by_name, notices=tuple(notices)), tuple(faults)


def _factory(class_name: str, class_key: str, factories: Mapping[str, Factory]) -> Factory:
    for known, factory in factories.items():
        if class_name in (known, known.rpartition(".")[2]):
            return factory
    message = (
        f"Invalid value {class_name} for configuration {class_key}: "
        f"Class {class_name} could not be found. Known are: {', '.join(factories)}"
    )
    raise ConfigError.of(class_key, message)


def _setup(name: str, raw: Mapping[str, str], environment: Mapping[str, str]) -> Setup:
    prefix = f"{NAMES}.{name}.param."
    params = {
        key.removeprefix(prefix): value for key, value in raw.items() if key.startswith(prefix)
    }
    return Setup(prefix=prefix, params=params, environment=environment)
