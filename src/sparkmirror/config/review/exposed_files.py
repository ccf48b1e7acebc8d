"""Notices about the files with secrets that a configuration names and that others may read.

These are the file itself, if it contains a secret; files of config providers; key stores; files of
tokens, keys and users; keytabs; the JAAS file of KAFKA_OPTS. Each file has one notice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sparkmirror.config.files.properties import Properties
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.review.findings import plain_text_secret_notices
from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.file_permissions import exposure_of
from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.secrets.variables import find_variables
from sparkmirror.errors import ConfigError

_TOKENS_FILE = "sparkmirror.rest.bearer.tokens.file"
_TOKEN_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  the name of a key
_CLIENT_FILE_KEYS = (
    "ssl.keystore.location",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    _TOKEN_ENDPOINT,
)
_CLIENT_FILE_OPTIONS = (
    "keyTab",
    "oauth.access.token.location",
    "oauth.refresh.token.location",
    "oauth.client.assertion.location",
)
_USERS_FILE_OPTION = "file"
"""The option of Connect's PropertyFileLoginModule: the users of the REST API."""
_FILE_PROVIDER, _DIRECTORY_PROVIDER = "FileConfigProvider", "DirectoryConfigProvider"
_JAAS_FILE = re.compile(r"-Djava\.security\.auth\.login\.config==?(\"[^\"]+\"|'[^']+'|\S+)")
_JAAS_SECTION = re.compile(r"\{(.*?)\}\s*;", re.DOTALL)


def exposed_file_notices(
    properties: Properties, environment: Mapping[str, str], *, with_read_files: bool
) -> tuple[Notice, ...]:
    """Return a notice for each file with secrets that others may read.

    A start leaves out files of config providers, key stores, keytabs and files of tokens: the
    providers and clients that read them warn, also for the configs of connectors.
    """
    found: dict[Path, Notice] = {}
    for key, file in _secret_files(properties, environment, with_read_files):
        exposure = exposure_of(file) if file not in found else ""
        if exposure:
            found[file] = Notice(
                kind=NoticeKind.READABLE_BY_OTHERS, message=exposure, file=properties.file, key=key
            )
    return tuple(found.values())


def _secret_files(
    properties: Properties, environment: Mapping[str, str], with_read_files: bool
) -> Iterator[tuple[str, Path]]:
    """The key that names each file, and the file."""
    config = properties.mapping
    if any(plain_text_secret_notices(config)):
        yield "", Path(properties.file)
    for key, value in config.items():
        if key == _TOKENS_FILE and value:
            yield key, Path(value.strip())
        if with_read_files:
            for file in (*_provider_files(value, config), *_client_files(key, value)):
                yield key, file
    for match in _JAAS_FILE.finditer(environment.get("KAFKA_OPTS", "")):
        jaas_file = Path(match[1].strip("\"'"))
        yield "", jaas_file
        options = (_USERS_FILE_OPTION, *(_CLIENT_FILE_OPTIONS if with_read_files else ()))
        for section in _JAAS_SECTION.findall(_read(jaas_file)):
            for file in _option_files(section, options):
                yield "", file


def _provider_files(value: str, config: Mapping[str, str]) -> Iterator[Path]:
    """The files that the placeholders of a value name."""
    for variable in find_variables(value) if "${" in value else ():
        provider = config.get(f"{CONFIG_PROVIDERS_KEY}.{variable.provider}.class", "").strip()
        if provider.endswith(_FILE_PROVIDER):
            yield Path(variable.path)
        elif provider.endswith(_DIRECTORY_PROVIDER):
            yield Path(variable.path) / variable.key


def _client_files(key: str, value: str) -> Iterator[Path]:
    """The files that a client with this key reads secrets from."""
    if key.endswith(jaas.SASL_JAAS_CONFIG):
        yield from _option_files(value, _CLIENT_FILE_OPTIONS)
    for name in _CLIENT_FILE_KEYS:
        if value and (key == name or key.endswith(f".{name}")):
            if name != _TOKEN_ENDPOINT:
                yield Path(value)
            elif value.startswith("file:"):
                yield Path("/" + value.removeprefix("file:").lstrip("/"))


def _option_files(text: str, options: tuple[str, ...]) -> Iterator[Path]:
    """The files that the options of login modules name."""
    try:
        modules = jaas.parse_jaas_config(text)
    except ConfigError:
        return  # the validation of the login reports it
    for module in modules:
        for option in options:
            if module.options.get(option):
                yield Path(module.options[option].removeprefix("file:"))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""  # the code that needs the file reports it
