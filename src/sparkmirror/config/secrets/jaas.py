"""`sasl.jaas.config`: the login module of a client, and its options.

Form: `module flag (option=value)* ;`. `parse_jaas_config` accepts exactly what Kafka's own reader
accepts: any number of modules. `parse_login_module` is for a client: it requires one module,
refuses the modules that Kafka forbids, and accepts a missing `;` at the end of the text with a
notice, because published examples lack it.

The lexical rules are those of Java's StreamTokenizer with Kafka's settings (`-`, `_` and `$` belong
to words):

- A word may contain digits and dots but not begin with one. Text that begins with a digit is a
  number, even `1.2` of `1.2.3`. A number has no text.
- A quoted text ends at its quote, or without an error at the end of the line. C escapes and octal
  codes up to \\377 are replaced in it.
- `//`, but also a single `/`, starts a comment up to the end of the line. A `/` at the end of a
  line makes the next line a comment too. A block comment skips the character after a line end.
- Every other character is a symbol.

Option values are secrets. In a malformed text any word may be part of a secret (an unquoted
password with a blank in it). So no repr and no error contains a word of the text, except the names
of known options. Errors give the position instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.secrets.password import HIDDEN
from sparkmirror.errors import ConfigError

SASL_JAAS_CONFIG = "sasl.jaas.config"

CONTROL_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_SECURITY = "org.apache.kafka.common.security"
LOGIN_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}
"""The supported mechanisms, and the login module of each."""

DISALLOWED_LOGIN_MODULES = frozenset(
    {
        "com.sun.security.auth.module.JndiLoginModule",
        "com.sun.security.auth.module.LdapLoginModule",
    }
)
"""Modules that make a client fetch code or data from any server."""

PUBLIC_OPTIONS = frozenset(
    {
        "awsDebugCreds", "awsMaxBackOffTimeMs", "awsMaxRetries", "awsProfileName", "awsRegion",
        "awsRoleArn",
        "awsRoleSessionName", "awsStsRegion", "clientId", "debug", "doNotPrompt", "file", "keyTab",
        "oauth.audience", "oauth.client.id", "oauth.scope", "oauth.token.endpoint.uri", "principal",
        "refreshKrb5Config", "renewTGT", "scope", "serviceName", "ssl.truststore.location",
        "ssl.truststore.type", "storeKey", "ticketCache", "tokenauth",
        "unsecuredLoginLifetimeSeconds", "unsecuredLoginStringClaim_sub", "useKeyTab",
        "useTicketCache", "username",
    }
)  # fmt: skip
"""Options whose values may be shown. All others are secrets."""

SECRET_OPTIONS = frozenset(
    {
        "awsRoleAccessKeyId", "awsRoleExternalId", "awsRoleSecretAccessKey", "awsRoleSessionToken",
        "clientSecret", "oauth.access.token", "oauth.client.assertion",
        "oauth.client.secret", "oauth.password.grant.password", "oauth.refresh.token", "password",
        "ssl.key.password", "ssl.keystore.password", "ssl.truststore.password",
    }
)  # fmt: skip
"""Options whose names an error may show, but never their values."""

_WORD = "A-Za-z_$\u00a0-\U0010ffff"
# No possessive quantifier around a group: Python before 3.11.5 matches some of them wrongly.
_TOKEN = re.compile(
    rf"""
      (?P<blank>[\x00-\x20]+)
    | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]*))
    | (?P<word>[{_WORD}][{_WORD}0-9.-]*)
    | (?P<quote>["'])(?P<text>(?:\\(?:.|\Z)|(?!(?P=quote))[^\\\n\r])*)(?P<end>(?P=quote)?)
    | (?P<line_comment>//[^\n\r]*|/(?!\*).?[^\n\r]*)
    | (?P<block_comment>/\*(?:(?:\r\n?+|\n).|[^\r\n])+?(?<=\*)/)
    | (?P<endless_comment>/\*.*)
    | (?P<symbol>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:([0-3][0-7]{0,2}|[4-7][0-7]?)|(.)|\Z)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_END_OF_INPUT = "\uffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginModule:
    """One module with its flag (in lower case) and options."""

    class_name: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas_config(text: str) -> tuple[LoginModule, ...]:
    """Every module, as Kafka reads them. Raises ConfigError if the text is malformed."""
    modules, _ = _parse_modules(text, accept_missing_end=False)
    return modules


def parse_login_module(
    text: str, key: str = SASL_JAAS_CONFIG
) -> tuple[LoginModule, tuple[Notice, ...]]:
    """The one module of a client, and notices about it. Raises ConfigError."""
    modules, is_end_missing = _parse_modules(text, accept_missing_end=True)
    if len(modules) != 1:
        message = f"JAAS config property contains {len(modules)} login modules, should be 1 module"
        raise ConfigError.of(key, message)
    (module,) = modules
    if module.class_name in DISALLOWED_LOGIN_MODULES:
        message = f"{module.class_name} is not allowed; use the login module of your sasl.mechanism"
        raise ConfigError.of(key, message)
    if not is_end_missing:
        return module, ()
    message = "the final ';' is missing: Java's Kafka clients refuse this; add it"
    return module, (Notice(kind=NoticeKind.JAAS, message=message, key=key),)


def _parse_modules(text: str, *, accept_missing_end: bool) -> tuple[tuple[LoginModule, ...], bool]:
    """The modules, and whether the final `;` was missing."""
    stream = tokenize(text)
    modules: list[LoginModule] = []
    is_end_missing = False
    for first in stream:
        module, last = _parse_entry(first, stream)
        if last.symbol != ";":
            # An open quote contains all text after it, so more than the `;` may be missing.
            if not accept_missing_end or not last.closed:
                raise _syntax_error(
                    "JAAS config entry not terminated by semi-colon", "add the final ;"
                )
            is_end_missing = True
        if not module.class_name:
            raise _syntax_error("Login module not specified in JAAS config", _EXPECTED_FORM, first)
        modules.append(module)
    if not modules:
        raise _syntax_error("Login module not specified in JAAS config", _EXPECTED_FORM)
    return tuple(modules), is_end_missing


def _parse_entry(first: JaasToken, stream: Iterator[JaasToken]) -> tuple[LoginModule, JaasToken]:
    """One module, and its last token: a `;` unless the text ends before it."""
    last = next(stream, first)
    flag = _parse_flag(first, last)
    options: dict[str, str] = {}
    for name in stream:
        if name.symbol == ";":
            last = name
            break
        last, value = _parse_option_value(name, stream)
        options["null" if name.text is None else name.text] = value
    return LoginModule(class_name=first.text or "", flag=flag, options=options), last


def _parse_flag(first: JaasToken, token: JaasToken) -> str:
    if token is first:
        raise _syntax_error(
            "Login module control flag not specified in JAAS config", _EXPECTED_FORM
        )
    if token.text is None:
        problem = "Login module control flag is not available in the JAAS config"
        raise _syntax_error(problem, _EXPECTED_FORM, token)
    flag = token.text.lower()
    if flag not in CONTROL_FLAGS:
        advice = f"use one of {', '.join(sorted(CONTROL_FLAGS))}"
        raise _syntax_error("Invalid login module control flag in JAAS config", advice, token)
    return flag


def _parse_option_value(name: JaasToken, stream: Iterator[JaasToken]) -> tuple[JaasToken, str]:
    """The token behind `name =`, and its text."""
    equals = next(stream, None)
    value = next(stream, None) if equals is not None and equals.symbol == "=" else None
    if value is None or value.text is None:
        shown = "null" if name.text is None else name.text
        if shown not in {"null"} | PUBLIC_OPTIONS | SECRET_OPTIONS:
            shown = HIDDEN
        advice = "put every value in double quotes"
        raise _syntax_error(f"Value not specified for key '{shown}' in JAAS config", advice, name)
    return value, value.text


_EXPECTED_FORM = 'write it as: module required option="value";'


def _syntax_error(problem: str, advice: str, token: JaasToken | None = None) -> ConfigError:
    position = "" if token is None else f" (at character {token.position + 1})"
    return ConfigError.of(SASL_JAAS_CONFIG, f"{problem}{position}; {advice}")


class JaasToken(NamedTuple):
    """A word or a quoted text (`text`), a symbol (`symbol`), or a number (neither)."""

    position: int
    text: str | None = None
    symbol: str = ""
    closed: bool = True
    """False for a quoted text that ends at the end of the line, without a quote."""

    def __repr__(self) -> str:
        return f"JaasToken(position={self.position}, symbol={self.symbol!r})"


def tokenize(source: str) -> Iterator[JaasToken]:
    """The tokens of a text, without comments and blanks."""
    for match in _TOKEN.finditer(source):
        position = match.start()
        match match.lastgroup:
            case "word":
                yield JaasToken(position, text=match["word"])
            case "end":
                text = _ESCAPE.sub(_unescape_match, match["text"])
                yield JaasToken(position, text=text, closed=bool(match["end"]))
            case "number":
                yield JaasToken(position)
            case "symbol":
                yield JaasToken(position, symbol=match["symbol"])


def _unescape_match(match: re.Match[str]) -> str:
    octal, plain = match.groups()
    if octal is not None:
        return chr(int(octal, 8))
    return _END_OF_INPUT if plain is None else _CONTROL.get(plain, plain)
