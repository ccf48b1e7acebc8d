"""A SASL login without a broker."""

from __future__ import annotations

import pytest
from kafka.protocol.sasl import SaslHandshakeResponse

from sparkmirror.config.secrets.password import Password
from sparkmirror.security.sasl_credentials import PasswordLogin
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.endpoint_errors import Endpoint
from sparkmirror.wire.net.sasl.authenticator import SaslClientAuthenticator

ENDPOINT = Endpoint(cluster="west", address=Address("b1", 9092), security_protocol="SASL_PLAINTEXT")


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_login_without_tls_logs_nothing(mechanism: str, caplog: pytest.LogCaptureFixture) -> None:
    password = Password("secret")
    login = SaslClientAuthenticator(
        ENDPOINT, PasswordLogin(mechanism=mechanism, username="user", password=password)
    )
    login.on_handshake_response(SaslHandshakeResponse(error_code=0, mechanisms=[mechanism]))
    assert login.authenticate_request().auth_bytes
    assert caplog.records == []
