"""The principal of a client, as far as the client can know it."""

from __future__ import annotations

import pytest

from sparkmirror.cli.check.principal import login_description, principal_of
from sparkmirror.config.secrets.password import Password
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.kerberos.gss_contexts import KerberosTickets
from sparkmirror.security.sasl_credentials import (
    KerberosLogin,
    PasswordLogin,
    SaslLogin,
    TokenLogin,
)
from tests.support.security.fixed_token import FixedToken

TICKETS = KerberosTickets(service_name="kafka")


@pytest.mark.parametrize(
    ("login", "principal"),
    [
        (None, "User:ANONYMOUS"),
        (PasswordLogin(mechanism="PLAIN", username="a", password=Password("x")), "User:a"),
        (TokenLogin(tokens=FixedToken("x")), "User:<subject of the token>"),
        (KerberosLogin(tickets=TICKETS, principal="mirror/host@LAB"), "User:mirror"),
        (KerberosLogin(tickets=TICKETS), "User:<principal of the ticket>"),
    ],
    ids=["none", "password", "token", "keytab", "ticket cache"],
)
def test_the_principal_is_that_of_the_login(login: SaslLogin | None, principal: str) -> None:
    protocol = "PLAINTEXT" if login is None else "SASL_PLAINTEXT"
    security = ClientSecurity(protocol=protocol, login=login)
    assert principal_of(security, {}) == principal
    if login is not None:
        name = principal.removeprefix("User:")
        assert login_description(security, {}) == f"SASL_PLAINTEXT, {login.mechanism} as {name}"
