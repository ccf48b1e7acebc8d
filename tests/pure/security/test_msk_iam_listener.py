"""The IAM listener of the tests: which tokens it accepts, and what it forwards."""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from kafka.protocol.metadata import MetadataRequest

from sparkmirror.errors import ClusterUnavailable, NotAuthorized
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from sparkmirror.security.client_security import ClientSecurity
from sparkmirror.security.sasl_credentials import TokenLogin
from sparkmirror.wire.net.address import Address
from sparkmirror.wire.net.connection import BrokerConnection, ClientConfig
from sparkmirror.wire.protocol.apis import METADATA
from tests.support.kafka.fake_broker import FakeBroker, answering_broker, leader_metadata
from tests.support.security.fixed_token import FixedToken
from tests.support.security.msk_iam_listener import MskIamListener
from tests.support.security.msk_iam_token import TokenRefused, verify_token

REGION = "us-east-2"
SECRETS = {"AKIDEXAMPLE": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"}
SIGNED_AT = datetime(2026, 11, 17, 5, 45, 49, tzinfo=UTC)
SIGNED_URL = (
    "https://kafka.us-east-2.amazonaws.com/?Action=kafka-cluster%3AConnect"
    "&X-Amz-Algorithm=AWS4-HMAC-SHA256"
    "&X-Amz-Credential=AKIDEXAMPLE%2F20261117%2Fus-east-2%2Fkafka-cluster%2Faws4_request"
    "&X-Amz-Date=20261117T054549Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host"
    "&X-Amz-Security-Token=session%2Ftoken%2Bof%3Dtest"
    "&X-Amz-Signature=cdde9d86ecbb4f7f23257c16b3a4dc4e23ea3d25119e8fda9929c8591c808213"
    "&User-Agent=aws-msk-iam-sasl-signer-python%2F1.0.2"
)
"""AWS's library for Python signed this with SECRETS."""


def token(url: str = SIGNED_URL) -> str:
    return base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


# -- tokens ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("age_s", [-60, 0, 899])
def test_a_token_that_aws_signed_is_accepted(age_s: int) -> None:
    now = SIGNED_AT + timedelta(seconds=age_s)
    assert verify_token(token(), region=REGION, secrets=SECRETS, now=now) == "AKIDEXAMPLE"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (SIGNED_URL.replace("Signature=c", "Signature=d"), "signature does not match"),
        (SIGNED_URL.replace("token%2Bof", "token%2Bby"), "signature does not match"),
        (SIGNED_URL.replace("AKIDEXAMPLE", "AKIDOTHER"), "access key AKIDOTHER is unknown"),
        (SIGNED_URL.replace("Expires=900", "Expires=9000"), "valid for more than"),
        (SIGNED_URL.replace("Connect", "Delete"), "no request to connect"),
        (SIGNED_URL.replace("SignedHeaders=host", "SignedHeaders="), "another signature"),
    ],
    ids=["signature", "session", "key", "expiry", "action", "headers"],
)
def test_a_changed_token_is_refused(changed: str, reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        verify_token(token(changed), region=REGION, secrets=SECRETS, now=SIGNED_AT)


def test_a_token_of_another_region_time_or_secret_is_refused() -> None:
    with pytest.raises(TokenRefused, match="this is region eu-west-1"):
        verify_token(token(), region="eu-west-1", secrets=SECRETS, now=SIGNED_AT)
    late = SIGNED_AT + timedelta(seconds=901)
    with pytest.raises(TokenRefused, match="expired"):
        verify_token(token(), region=REGION, secrets=SECRETS, now=late)
    with pytest.raises(TokenRefused, match="signature does not match"):
        verify_token(token(), region=REGION, secrets={"AKIDEXAMPLE": "other"}, now=SIGNED_AT)
    with pytest.raises(TokenRefused, match="no request to connect"):
        verify_token("", region=REGION, secrets=SECRETS, now=SIGNED_AT)


# -- connections -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority.create(tmp_path_factory.mktemp("iam") / "tls")


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with answering_broker({3: leader_metadata}) as answering:
        yield answering


@pytest.fixture
def listener(authority: CertificateAuthority, broker: FakeBroker) -> Iterator[MskIamListener]:
    with MskIamListener(authority, REGION, SECRETS, clock=lambda: SIGNED_AT) as listening:
        listening.forward_to(broker.address)
        yield listening


def connect(listener: MskIamListener, ca: Path, text: str) -> BrokerConnection:
    security = ClientSecurity(
        protocol="SASL_SSL",
        login=TokenLogin(tokens=FixedToken(text)),
        ssl_context=ssl.create_default_context(cafile=str(ca)),
    )
    client = ClientConfig(cluster="msk", security=security)
    return BrokerConnection.open(client, Address.parse(listener.address))


def test_requests_after_a_login_reach_the_broker(
    listener: MskIamListener, broker: FakeBroker, authority: CertificateAuthority
) -> None:
    connection = connect(listener, authority.ca_certificate, token())
    assert connection.call(METADATA, MetadataRequest(topics=[])).cluster_id == "c"
    connection.close()
    assert broker.api_keys() == [18, 3]
    assert listener.logins == ["AKIDEXAMPLE"]


def test_a_client_logs_in_again_before_its_session_ends(
    listener: MskIamListener, authority: CertificateAuthority
) -> None:
    listener.session_lifetime_ms = 1
    connection = connect(listener, authority.ca_certificate, token())
    listener.session_lifetime_ms = 0
    time.sleep(0.01)  # longer than the session lasts
    assert connection.call(METADATA, MetadataRequest(topics=[])).cluster_id == "c"
    connection.close()
    assert len(listener.logins) == 2
    assert listener.renewals_after_fetches == 0, "the client has fetched nothing"


def test_a_refused_token_ends_the_connection(
    listener: MskIamListener, broker: FakeBroker, authority: CertificateAuthority
) -> None:
    with pytest.raises(NotAuthorized, match="the signature does not match"):
        connect(listener, authority.ca_certificate, token(SIGNED_URL.replace("=cdde", "=aaaa")))
    assert listener.refusals == ["the signature does not match"]
    assert broker.api_keys() == [18]


def test_a_client_without_a_login_reaches_nothing(
    listener: MskIamListener, broker: FakeBroker, authority: CertificateAuthority
) -> None:
    security = ClientSecurity(
        protocol="SSL",
        ssl_context=ssl.create_default_context(cafile=str(authority.ca_certificate)),
    )
    client = ClientConfig(cluster="msk", security=security)
    connection = BrokerConnection.open(client, Address.parse(listener.address))
    with pytest.raises(ClusterUnavailable):
        connection.call(METADATA, MetadataRequest(topics=[]))
    assert broker.api_keys() == [18]
