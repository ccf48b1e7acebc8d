"""Grants of OAuth that a client sends to a token endpoint, in the form of Kafka's Java client.

A grant names the client and proves who it is: by its secret (HTTP Basic), or by a signed assertion.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote_plus

from sparkmirror.config.secrets.password import Password
from sparkmirror.security.oauthbearer.assertion import AssertionSource
from sparkmirror.security.oauthbearer.token_endpoint import TokenEndpoint
from sparkmirror.security.oauthbearer.token_retriever import RetrievedToken

CLIENT_CREDENTIALS_GRANT = "client_credentials"
JWT_BEARER_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
CLIENT_ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSecretRetriever:
    """The client credentials grant with the secret of the client."""

    endpoint: TokenEndpoint
    client_id: str
    client_secret: Password
    scope: str = ""
    is_urlencoded: bool = False
    """`sasl.oauthbearer.header.urlencode`: encode id and secret as RFC 6749 says."""
    more: frozenset[tuple[str, str]] = frozenset()
    """More fields of the form, such as the audience."""

    @property
    def name(self) -> str:
        """The endpoint and the client."""
        return f"token of client {self.client_id} from {self.endpoint.url}"

    def retrieve(self) -> RetrievedToken:
        """Send the grant."""
        form = {"grant_type": CLIENT_CREDENTIALS_GRANT, **_scope(self.scope), **dict(self.more)}
        header = basic_authorization(
            self.client_id, self.client_secret, is_urlencoded=self.is_urlencoded
        )
        return self.endpoint.retrieve(form, header, [self.client_secret])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAssertionRetriever:
    """The client credentials grant with an assertion instead of a secret (RFC 7523, 2.2)."""

    endpoint: TokenEndpoint
    assertion: AssertionSource
    client_id: str = ""
    scope: str = ""
    more: frozenset[tuple[str, str]] = frozenset()

    @property
    def name(self) -> str:
        """The endpoint and the client."""
        return f"token of client {self.client_id or 'by assertion'} from {self.endpoint.url}"

    def retrieve(self) -> RetrievedToken:
        """Make the assertion and send the grant."""
        assertion = self.assertion.assertion()
        form = {
            "client_assertion_type": CLIENT_ASSERTION_TYPE,
            "client_assertion": assertion.value,
            "grant_type": CLIENT_CREDENTIALS_GRANT,
            **({"client_id": self.client_id} if self.client_id else {}),
            **_scope(self.scope),
            **dict(self.more),
        }
        return self.endpoint.retrieve(form, {}, [assertion])


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtBearerRetriever:
    """The JWT bearer grant: the assertion itself is exchanged for a token (RFC 7523, 2.1)."""

    endpoint: TokenEndpoint
    assertion: AssertionSource
    scope: str = ""

    @property
    def name(self) -> str:
        """The endpoint."""
        return f"token by JWT bearer assertion from {self.endpoint.url}"

    def retrieve(self) -> RetrievedToken:
        """Make the assertion and send the grant."""
        assertion = self.assertion.assertion()
        form = {
            "grant_type": JWT_BEARER_GRANT,
            "assertion": assertion.value,
            **_scope(self.scope),
        }
        return self.endpoint.retrieve(form, {}, [assertion])


def basic_authorization(
    client_id: str, client_secret: Password, *, is_urlencoded: bool = False
) -> Mapping[str, str]:
    """Return the Authorization header of a client."""
    names = [client_id, client_secret.value]
    joined = ":".join(map(quote_plus, names) if is_urlencoded else names)
    return {"Authorization": f"Basic {base64.b64encode(joined.encode()).decode('ascii')}"}


def _scope(scope: str) -> Mapping[str, str]:
    return {"scope": scope} if scope else {}
