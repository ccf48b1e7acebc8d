"""A token in a file that another program renews. Each login reads the file again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkmirror.security.oauthbearer.assertion import read_secret_text
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken
from sparkmirror.security.sasl_credentials import BearerToken, TokenUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenFile:
    """The token of a file, with the SASL extensions of the login."""

    file: str
    extensions: frozenset[tuple[str, str]] = frozenset()
    clock: Callable[[], float] = field(default=time.time, repr=False)

    def token(self, host: str) -> BearerToken:
        """Read the file. Raises TokenUnavailable if it has no valid token."""
        text = read_secret_text(self.file, "the token file").strip()
        try:
            token = RetrievedToken.parse(text, now_s=self.clock())
        except TokenUnavailable as error:
            raise TokenUnavailable(f"token file {self.file}: {error}") from None
        return BearerToken(value=token.value, extensions=dict(self.extensions))
