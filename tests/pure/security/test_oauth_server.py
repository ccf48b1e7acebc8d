"""The OAuth server of the tests: who gets a token, and what it says."""

from __future__ import annotations

import base64
import json
from typing import Any

from tests.support.security.oauth_server import OAuthServer

URL = "http://localhost"
GRANT = "grant_type=client_credentials&scope=mirror"


def ask_for_token(server: OAuthServer, client: str, secret: str) -> tuple[int, dict[str, Any]]:
    credentials = base64.b64encode(f"{client}:{secret}".encode()).decode()
    return server.token_response(f"Basic {credentials}", GRANT)


def test_a_known_client_gets_a_token_of_its_own_name() -> None:
    status, answer = ask_for_token(OAuthServer(URL, {"alice": "secret"}), "alice", "secret")
    payload = answer["access_token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert (claims["sub"], claims["aud"], claims["scope"]) == ("alice", "kafka", "mirror")
    assert (status, answer["expires_in"]) == (200, 3600)


def test_a_wrong_secret_and_an_outage_give_no_token() -> None:
    server = OAuthServer(URL, {"alice": "secret"})
    assert ask_for_token(server, "alice", "guessed")[0] == 401
    assert ask_for_token(server, "bob", "")[0] == 401
    server.outage = (503, "temporarily_unavailable")
    assert ask_for_token(server, "alice", "secret") == (503, {"error": "temporarily_unavailable"})
    assert server.tokens_issued == 0
