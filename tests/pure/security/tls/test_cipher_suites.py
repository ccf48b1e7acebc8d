"""`ssl.cipher.suites` with Java's names limits what OpenSSL offers."""

from __future__ import annotations

import ssl

import pytest

from sparkmirror.errors import ConfigError
from sparkmirror.security.tls.cipher_suites import (
    OPENSSL_NAMES,
    TLS_1_3_SUITES,
    parse_cipher_suites,
)
from sparkmirror.security.tls.ssl_context import client_context

GCM = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
TLS_1_3 = "TLS_AES_256_GCM_SHA384"
IANA_NUMBERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": 0xC02C,
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": 0xC02F,
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": 0xCCA8,
    "TLS_DHE_RSA_WITH_AES_256_CBC_SHA256": 0x006B,
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384": 0xC024,
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": 0xC027,
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": 0xC014,
    "TLS_RSA_WITH_AES_128_CBC_SHA": 0x002F,
    "TLS_RSA_WITH_AES_256_GCM_SHA384": 0x009D,
}


def offered(context: ssl.SSLContext) -> set[str]:
    """The suites of TLS 1.2. Those of TLS 1.3 are always listed."""
    return {
        cipher["name"] for cipher in context.get_ciphers() if cipher["name"] not in TLS_1_3_SUITES
    }


def test_openssl_knows_each_suite_under_its_other_name() -> None:
    assert len(OPENSSL_NAMES) == 33
    assert len(set(OPENSSL_NAMES.values())) == 33
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for java_name, name in OPENSSL_NAMES.items():
        context.set_ciphers(f"{name}:@SECLEVEL=0")
        numbers = {cipher["name"]: cipher["id"] & 0xFFFF for cipher in context.get_ciphers()}
        assert numbers[name] == IANA_NUMBERS.get(java_name, numbers[name])


def test_only_the_suites_of_the_setting_are_offered() -> None:
    context = client_context({"ssl.cipher.suites": f"{GCM}, {TLS_1_3}"})
    assert offered(context) == {"ECDHE-RSA-AES256-GCM-SHA384"}
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.maximum_version == ssl.TLSVersion.TLSv1_3


def test_a_version_without_a_suite_is_not_used() -> None:
    assert client_context({"ssl.cipher.suites": GCM}).maximum_version == ssl.TLSVersion.TLSv1_2
    assert client_context({"ssl.cipher.suites": TLS_1_3}).minimum_version == ssl.TLSVersion.TLSv1_3


def test_the_old_prefix_of_java_means_the_same_suite() -> None:
    old = parse_cipher_suites(["SSL_RSA_WITH_AES_128_CBC_SHA"])
    assert old == parse_cipher_suites(["TLS_RSA_WITH_AES_128_CBC_SHA"])


def test_some_suites_of_tls_1_3_only_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    client_context({"ssl.cipher.suites": ",".join((GCM, *TLS_1_3_SUITES))})
    assert caplog.messages == []
    for _ in range(2):
        client_context({"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"})
    assert len(caplog.messages) <= 1  # another test may have caused it before
    assert all("Python uses all of them" in message for message in caplog.messages)


def test_a_suite_that_openssl_does_not_have_is_left_out_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unknown = "TLS_KRB5_WITH_RC4_128_SHA"
    context = client_context({"ssl.cipher.suites": f"{unknown},{GCM}"})
    assert offered(context) == {"ECDHE-RSA-AES256-GCM-SHA384"}
    assert f"{unknown} cannot be used" in caplog.text


@pytest.mark.parametrize(
    "properties",
    [
        {"ssl.cipher.suites": "NO_SUCH_SUITE"},
        {"ssl.cipher.suites": GCM, "ssl.enabled.protocols": "TLSv1.3"},
        {"ssl.cipher.suites": TLS_1_3, "ssl.enabled.protocols": "TLSv1.2"},
    ],
    ids=["unknown", "none of 1.3", "none of 1.2"],
)
def test_no_suite_for_any_version_is_a_fault(properties: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"ssl\.cipher\.suites holds no suite"):
        client_context(properties)
