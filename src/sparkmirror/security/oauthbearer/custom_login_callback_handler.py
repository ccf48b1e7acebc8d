"""Tokens from a Python class of the operator: `sasl.login.callback.handler.class=module:Class`.

The class extends OAuthBearerLoginCallback. The operator of the worker lists it in
`sparkmirror.oauthbearer.allowed.classes`, and installs it for the worker, for drivers, and on all
hosts with executors.

    class VaultTokens(OAuthBearerLoginCallback):
        def retrieve(self) -> LoginToken:
            text, seconds = ask_vault(self.options["vaultRole"])
            return LoginToken(value=text, lifetime_s=seconds)
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sparkmirror.errors import ConfigError
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken
from sparkmirror.security.sasl_credentials import TokenUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginToken:
    """What a callback returns."""

    value: str = field(repr=False)
    lifetime_s: float | None = None
    """Needed only if the token is not a JWT with `exp`."""
    extensions: Mapping[str, str] = field(default_factory=dict)
    """SASL extensions."""


class OAuthBearerLoginCallback(ABC):
    """Retrieves tokens. One object per login settings; one thread calls it."""

    def __init__(self, options: Mapping[str, str]) -> None:
        """Keep the options of the login module. Raise ValueError if one is missing or invalid."""
        self.options = options

    @abstractmethod
    def retrieve(self) -> LoginToken:
        """Return a new token. May block. Raise TokenUnavailable with a reason for the operator."""


@dataclass(frozen=True, slots=True)
class CallbackRetriever:
    """The retriever of a callback class. Equal class and options are equal retrievers."""

    class_name: str
    options: frozenset[tuple[str, str]] = field(repr=False)
    callback: OAuthBearerLoginCallback = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The class."""
        return f"token of {self.class_name}"

    def retrieve(self) -> RetrievedToken:
        """Call the callback."""
        token = self.callback.retrieve()
        if not isinstance(token, LoginToken):
            raise TokenUnavailable("its callback returned no LoginToken")
        parsed = RetrievedToken.parse(token.value, token.lifetime_s)
        return replace(parsed, extensions=dict(token.extensions))


def load_callback(key: str, class_name: str, options: Mapping[str, str]) -> CallbackRetriever:
    """Import the class `module:Class` and create it. Raises ConfigError."""
    module_name, _, name = class_name.partition(":")
    try:
        callback_class = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError, ValueError):
        raise ConfigError.of(
            key, f"{key}: there is no Python class {class_name}; install its package on this host"
        ) from None
    if not (
        isinstance(callback_class, type) and issubclass(callback_class, OAuthBearerLoginCallback)
    ):
        base = f"{OAuthBearerLoginCallback.__module__}:{OAuthBearerLoginCallback.__name__}"
        raise ConfigError.of(key, f"{key}: {class_name} does not extend {base}")
    try:
        callback = callback_class(dict(options))
    except ValueError as error:
        raise ConfigError.of(key, f"{key}: {class_name} refuses its options: {error}") from None
    return CallbackRetriever(class_name, frozenset(options.items()), callback)
