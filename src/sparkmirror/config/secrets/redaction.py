"""Redaction: which values are secret, and the text that replaces them.

Decides by the name of the key, with any prefix (`B.producer.ssl.key.password`). A key is secret if
it contains a word like password, secret, token, credential or private key; all PASSWORD-typed keys
of the tables do. Keys that only point to a secret (`*.file`, `*.url`) stay visible, and so do
values that consist of placeholders. An unknown name that resembles a secret one is secret too,
because a misspelt `password` still has a password as its value.

Values are redacted before they are formatted: a search for secrets in formatted text leaks.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import lru_cache

from sparkmirror.config.secrets import jaas
from sparkmirror.config.secrets.password import HIDDEN
from sparkmirror.config.secrets.variables import has_only_variables
from sparkmirror.config.suggestions import closest_name
from sparkmirror.config.tables.client.common_client_configs import CLIENT_SECURITY_NAMES
from sparkmirror.errors import ConfigError

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    {
        "apikey", "accesskey", "credential", "credentials", "passphrase", "passwd", "password",
        "passwords", "privatekey", "pwd", "secret", "secretkey", "secrets", "token", "tokens",
    }
)  # fmt: skip
_SECRET_PAIRS = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("user", "info")})
_SECRET_ENDINGS = (
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.truststore.certificates",
)
_REFERENCE_WORDS = frozenset(
    {
        "algorithm", "class", "classes", "enable", "enabled", "file", "location", "ms", "path",
        "paths", "pattern", "seconds", "type", "uri", "url",
    }
)  # fmt: skip
_VISIBLE_ENDINGS = ("credentials.client.id",)
_MISSPELLABLE_WORDS = ("credential", "credentials", "jaas", "passphrase", "password", "secret")
_MISSPELLABLE_INITIALS = frozenset(word[0] for word in _MISSPELLABLE_WORDS)
_MIN_SIMILARITY = 0.85
_SECURITY_NAME = re.compile(r"(?:ssl|sasl)\.[^:/]*+\Z")
_PASSWORD_IN_URL = re.compile(r"(://[^/@:\s]*:)[^/@\s]+@")


def is_secret(key: str) -> bool:
    """Whether the value of the key is a secret."""
    return _is_named_secret(key) or _resembles_a_secret(key)


def _is_named_secret(key: str) -> bool:
    if key.endswith(_SECRET_ENDINGS) or key.endswith(jaas.SASL_JAAS_CONFIG):
        return True
    words = [word.lower() for word in _WORD.findall(key)]
    if not words or words[-1] in _REFERENCE_WORDS or key.endswith(_VISIBLE_ENDINGS):
        return False
    pairs = zip(words, words[1:], strict=False)
    return not _SECRET_WORDS.isdisjoint(words) or not _SECRET_PAIRS.isdisjoint(pairs)


_SECRET_NAMES = tuple(name for name in CLIENT_SECURITY_NAMES if _is_named_secret(name))


def _resembles_a_secret(key: str) -> bool:
    """Whether an unknown name, with any prefix, resembles the name of a secret."""
    if key.endswith(CLIENT_SECURITY_NAMES):
        return False
    words = [word.lower() for word in _WORD.findall(key)]
    if words and words[-1] in _REFERENCE_WORDS:
        return False
    if any(word[0] in _MISSPELLABLE_INITIALS and _is_misspelled_secret(word) for word in words):
        return True
    name = _SECURITY_NAME.search(key)
    return name is not None and closest_name(name[0], _SECRET_NAMES) is not None


@lru_cache(maxsize=1024)
def _is_misspelled_secret(word: str) -> bool:
    return bool(get_close_matches(word, _MISSPELLABLE_WORDS, n=1, cutoff=_MIN_SIMILARITY))


def redact_value(key: str, value: str) -> str:
    """The value as it may be shown."""
    if has_only_variables(value):
        return value
    if key.endswith(jaas.SASL_JAAS_CONFIG):
        return _redact_jaas(value)
    if is_secret(key):
        return HIDDEN
    return _PASSWORD_IN_URL.sub(rf"\1{HIDDEN}@", value) if "://" in value else value


def _redact_jaas(value: str) -> str:
    """Module, flag and public options are visible. A malformed text is hidden completely."""
    try:
        module, _ = jaas.parse_login_module(value)
    except ConfigError:
        return HIDDEN
    options = "".join(
        f' {name}="{option if _is_public_option(name, option) else HIDDEN}"'
        for name, option in module.options.items()
    )
    return f"{module.class_name} {module.flag}{options};"


def _is_public_option(name: str, option: str) -> bool:
    return name in jaas.PUBLIC_OPTIONS or has_only_variables(option)
