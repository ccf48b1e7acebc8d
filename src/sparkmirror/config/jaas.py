"""`sasl.jaas.config`: which login module, and with which options.

Form: `module flag (option=value)* ;`. `parse` accepts exactly what Kafka's own reader accepts, any
number of modules. `login_module` is for use: one module, none that Kafka forbids, and it forgives
one thing that Kafka does not, a missing `;` at the very end, because published examples lack it.

Option values are secrets, and in a broken text any word may be a piece of one (a password with a
blank in it, unquoted). So no repr and no error shows a word, unless it is the name of an option
that login modules are known to have; errors give the position instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.password import HIDDEN
from sparkmirror.config.tokens import Token, tokens
from sparkmirror.errors import ConfigError

KEY = "sasl.jaas.config"

FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})

_SECURITY = "org.apache.kafka.common.security"
MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_SECURITY}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
}
"""The mechanisms that the clients here can log in with, and the module that each needs."""

FORBIDDEN = frozenset(
    {
        "com.sun.security.auth.module.JndiLoginModule",
        "com.sun.security.auth.module.LdapLoginModule",
    }
)
"""Modules that make the client fetch code or data from a server of somebody's choice."""

HARMLESS_OPTIONS = frozenset(
    {
        "awsDebugCreds", "awsProfileName", "awsRoleArn", "awsRoleSessionName", "awsStsRegion",
        "clientId", "debug", "doNotPrompt", "file", "keyTab", "principal", "refreshKrb5Config",
        "renewTGT", "scope", "serviceName", "storeKey", "ticketCache", "tokenauth", "useKeyTab",
        "useTicketCache", "username",
    }
)  # fmt: skip
"""Options whose values may be shown."""

SECRET_OPTIONS = frozenset({"awsRoleExternalId", "clientSecret", "password"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginModule:
    """One module with its flag (in lower case) and options."""

    module: str
    flag: str
    options: Mapping[str, str] = field(repr=False)


def parse(text: str) -> tuple[LoginModule, ...]:
    """Read every module, exactly as Kafka does. ConfigError if the text is not of the form."""
    modules, _ = _read(text, forgive_missing_end=False)
    return modules


def login_module(text: str, key: str = KEY) -> tuple[LoginModule, tuple[Notice, ...]]:
    """Read the one module of a client, and what there is to say about it."""
    modules, forgiven = _read(text, forgive_missing_end=True)
    if len(modules) != 1:
        message = f"JAAS config property contains {len(modules)} login modules, should be 1 module"
        raise ConfigError.of(key, message)
    (module,) = modules
    if module.module in FORBIDDEN:
        message = f"{module.module} is not allowed; use the login module of your sasl.mechanism"
        raise ConfigError.of(key, message)
    if not forgiven:
        return module, ()
    message = "the final ';' is missing: Java's Kafka clients refuse this; add it"
    return module, (Notice(kind=NoticeKind.JAAS, message=message, key=key),)


def _read(text: str, *, forgive_missing_end: bool) -> tuple[tuple[LoginModule, ...], bool]:
    """The modules, and whether a missing end was forgiven."""
    stream = tokens(text)
    modules: list[LoginModule] = []
    forgiven = False
    for first in stream:
        module, last = _entry(first, stream)
        if last.sign != ";":
            # An open quote has swallowed whatever came after it: that is no small slip.
            if not forgive_missing_end or not last.closed:
                raise _fault("JAAS config entry not terminated by semi-colon", "add the final ;")
            forgiven = True
        if not module.module:
            raise _fault("Login module not specified in JAAS config", _FORM, first)
        modules.append(module)
    if not modules:
        raise _fault("Login module not specified in JAAS config", _FORM)
    return tuple(modules), forgiven


def _entry(first: Token, stream: Iterator[Token]) -> tuple[LoginModule, Token]:
    """One module, and its last token: a `;` unless the text has ended before one."""
    last = next(stream, first)
    flag = _flag(first, last)
    options: dict[str, str] = {}
    for name in stream:
        if name.sign == ";":
            last = name
            break
        last, value = _value(name, stream)
        options["null" if name.text is None else name.text] = value
    return LoginModule(module=first.text or "", flag=flag, options=options), last


def _flag(first: Token, token: Token) -> str:
    if token is first:
        raise _fault("Login module control flag not specified in JAAS config", _FORM)
    if token.text is None:
        problem = "Login module control flag is not available in the JAAS config"
        raise _fault(problem, _FORM, token)
    flag = token.text.lower()
    if flag not in FLAGS:
        advice = f"use one of {', '.join(sorted(FLAGS))}"
        raise _fault("Invalid login module control flag in JAAS config", advice, token)
    return flag


def _value(name: Token, stream: Iterator[Token]) -> tuple[Token, str]:
    """The token behind `name =`, and its text."""
    equals = next(stream, None)
    value = next(stream, None) if equals is not None and equals.sign == "=" else None
    if value is None or value.text is None:
        shown = "null" if name.text is None else name.text
        if shown not in {"null"} | HARMLESS_OPTIONS | SECRET_OPTIONS:
            shown = HIDDEN
        advice = "put every value in double quotes"
        raise _fault(f"Value not specified for key '{shown}' in JAAS config", advice, name)
    return value, value.text


_FORM = 'write it as: module required option="value";'


def _fault(problem: str, advice: str, token: Token | None = None) -> ConfigError:
    place = "" if token is None else f" (at character {token.position + 1})"
    return ConfigError.of(KEY, f"{problem}{place}; {advice}")
