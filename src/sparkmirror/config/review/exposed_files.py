"""Notices about the files with secrets that a configuration names and that others may read.

These are the file itself, if it contains a secret; files of config providers; key stores; files of
tokens and keys; the JAAS file of KAFKA_OPTS. Each file has one notice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from sparkmirror.config.files.properties import Properties
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.review.findings import plain_text_secret_notices
from sparkmirror.config.secrets.file_permissions import exposure_of
from sparkmirror.config.secrets.providers import CONFIG_PROVIDERS_KEY
from sparkmirror.config.secrets.variables import find_variables

KEY_STORE_LOCATION = "ssl.keystore.location"
_SECRET_FILE_KEYS = (
    "sparkmirror.rest.bearer.tokens.file",
    "sasl.oauthbearer.assertion.private.key.file",
)
_FILE_PROVIDER, _DIRECTORY_PROVIDER = "FileConfigProvider", "DirectoryConfigProvider"
_JAAS_FILE = re.compile(r"-Djava\.security\.auth\.login\.config==?(\"[^\"]+\"|'[^']+'|\S+)")


def exposed_file_notices(
    properties: Properties, environment: Mapping[str, str], *, with_key_stores: bool
) -> tuple[Notice, ...]:
    """Return a notice for each file with secrets that others may read.

    A start leaves out key stores: the clients that open them warn about them.
    """
    found: dict[Path, Notice] = {}
    for key, file in _secret_files(properties, environment, with_key_stores):
        exposure = exposure_of(file) if file not in found else ""
        if exposure:
            found[file] = Notice(
                kind=NoticeKind.READABLE_BY_OTHERS, message=exposure, file=properties.file, key=key
            )
    return tuple(found.values())


def _secret_files(
    properties: Properties, environment: Mapping[str, str], with_key_stores: bool
) -> Iterator[tuple[str, Path]]:
    """The key that names each file, and the file."""
    config = properties.mapping
    if any(plain_text_secret_notices(config)):
        yield "", Path(properties.file)
    keys = (*_SECRET_FILE_KEYS, *((KEY_STORE_LOCATION,) if with_key_stores else ()))
    for key, value in config.items():
        for variable in find_variables(value) if "${" in value else ():
            provider = config.get(f"{CONFIG_PROVIDERS_KEY}.{variable.provider}.class", "")
            if provider.strip().endswith(_FILE_PROVIDER):
                yield key, Path(variable.path)
            elif provider.strip().endswith(_DIRECTORY_PROVIDER):
                yield key, Path(variable.path) / variable.key
        if value and any(key == name or key.endswith(f".{name}") for name in keys):
            yield key, Path(value)
    for match in _JAAS_FILE.finditer(environment.get("KAFKA_OPTS", "")):
        yield "", Path(match[1].strip("\"'"))
