"""Decides whether a request may pass: by Basic credentials, by a bearer token, or always."""

from __future__ import annotations

from sparkmirror.rest.authentication.basic_auth import BasicAuthUsers
from sparkmirror.rest.authentication.bearer_tokens import BearerTokens


class Authenticator:
    """The users and the tokens of a REST server. Either one is enough."""

    def __init__(self, users: BasicAuthUsers | None, tokens: BearerTokens | None) -> None:
        self._users = users
        self._tokens = tokens

    @property
    def is_required(self) -> bool:
        """Whether a request needs credentials. Without users and tokens, none does."""
        return self._users is not None or self._tokens is not None

    def authenticate(self, authorization: str | None) -> str | None:
        """Return the user or the name of the token; None for wrong or missing credentials."""
        user = None if self._users is None else self._users.authenticate(authorization)
        if user is None and self._tokens is not None:
            return self._tokens.authenticate(authorization)
        return user

    @property
    def challenge_headers(self) -> tuple[tuple[str, str], ...]:
        """The headers of a 401. Connect sends none for Basic authentication."""
        return () if self._tokens is None else (("WWW-Authenticate", "Bearer"),)
