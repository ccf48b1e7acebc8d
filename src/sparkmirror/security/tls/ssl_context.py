"""Builds the TLS contexts of clients and servers from their settings and stores.

Every certificate of a trust store is trusted by itself, as in Java: an intermediate authority or
the certificate of one broker is enough. Python reads keys from files only: a key is written to a
file in memory, encrypted with a password that is used once.
"""

from __future__ import annotations

import logging
import secrets
import ssl
from collections.abc import Mapping

from sparkmirror.config.warn_once import warn_once
from sparkmirror.errors import ConfigError
from sparkmirror.security.keystore.entries import KeyStoreError
from sparkmirror.security.tls.cipher_suites import CipherSuites, parse_cipher_suites
from sparkmirror.security.tls.configured_stores import (
    OwnKey,
    read_own_keys,
    read_trusted_certificates,
    store_fault,
)
from sparkmirror.security.tls.secret_file import secret_file
from sparkmirror.security.tls.ssl_config import (
    CIPHER_SUITES,
    ENABLED_PROTOCOLS,
    SslConfig,
    StoreConfig,
)

log = logging.getLogger(__name__)

_DSA = "1.2.840.10040.4.1"


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a client, from the keys of Java's clients. Raises ConfigError."""
    return build_client_context(SslConfig.from_properties(properties))


def server_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a server, from the keys of a listener. Raises ConfigError."""
    return build_server_context(SslConfig.from_properties(properties))


def build_client_context(config: SslConfig) -> ssl.SSLContext:
    """Return a context that verifies the certificates of servers. Raises ConfigError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = config.checks_host_name
    _limit_protocol(context, config)
    _load_trust_store(context, config.trust_store)
    if config.key_store is not None:
        _load_key_store(context, config.key_store)
    return context


def build_server_context(config: SslConfig) -> ssl.SSLContext:
    """Return a context with a key. `ssl.client.auth` decides about client certificates.

    Raises ConfigError.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit_protocol(context, config)
    if config.key_store is None:
        key = "ssl.keystore.location"
        raise ConfigError.of(key, f"{key} is missing: a server over TLS needs a key")
    _load_key_store(context, config.key_store)
    if config.client_auth != "none":
        _load_trust_store(context, config.trust_store)
        is_required = config.client_auth == "required"
        context.verify_mode = ssl.CERT_REQUIRED if is_required else ssl.CERT_OPTIONAL
    return context


def _load_trust_store(context: ssl.SSLContext, store: StoreConfig | None) -> None:
    if store is None:
        context.load_default_certs()
        return
    certificates = read_trusted_certificates(store)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=b"".join(certificates))
    except (ssl.SSLError, ValueError):
        raise store_fault(store, "holds a certificate that is damaged") from None


def _load_key_store(context: ssl.SSLContext, store: StoreConfig) -> None:
    keys = read_own_keys(store)
    # OpenSSL has no suites for DSA any more: such a key matters only if there is no other.
    usable = [key for key in keys if key.algorithm != _DSA] or [*keys]
    try:
        for key in reversed(usable):  # OpenSSL prefers the last one that was loaded
            _load_own_key(context, key)
    except (ssl.SSLError, KeyStoreError, ValueError):
        raise store_fault(
            store, "holds a private key that does not fit its certificate, or that TLS cannot use"
        ) from None


def _load_own_key(context: ssl.SSLContext, key: OwnKey) -> None:
    # The library for keys is slow to import: clients without a key do without it.
    from sparkmirror.security.keystore.private_key import encrypted_pem

    password = secrets.token_hex(16)
    chain = "".join(ssl.DER_cert_to_PEM_cert(one) for one in key.certificate_chain)
    with secret_file(encrypted_pem(key.private_key, password) + chain.encode("ascii")) as path:
        context.load_cert_chain(path, password=password)


def _limit_protocol(context: ssl.SSLContext, config: SslConfig) -> None:
    """Set the TLS versions and the cipher suites."""
    lowest, highest = config.minimum_version, config.maximum_version
    if config.cipher_suites:
        suites = parse_cipher_suites(config.cipher_suites)
        _warn_about(suites)
        # Without a suite of its own, a version cannot be used.
        if not suites.tls_1_3:
            highest = ssl.TLSVersion.TLSv1_2
        if not suites.tls_1_2:
            lowest = ssl.TLSVersion.TLSv1_3
        if lowest > highest or not (suites.tls_1_2 or suites.tls_1_3):
            raise ConfigError.of(
                CIPHER_SUITES,
                f"{CIPHER_SUITES} holds no suite of the TLS versions in {ENABLED_PROTOCOLS}",
            )
        if suites.tls_1_2:
            _set_tls_1_2_suites(context, suites)
    context.minimum_version, context.maximum_version = lowest, highest


def _set_tls_1_2_suites(context: ssl.SSLContext, suites: CipherSuites) -> None:
    try:
        context.set_ciphers(":".join(suites.tls_1_2))
    except ssl.SSLError:
        raise ConfigError.of(
            CIPHER_SUITES, f"{CIPHER_SUITES} holds no suite of TLS 1.2 that OpenSSL offers"
        ) from None


def _warn_about(suites: CipherSuites) -> None:
    if suites.unknown:
        warn_once(
            log,
            f"{CIPHER_SUITES}: {', '.join(suites.unknown)} cannot be used: OpenSSL has no such"
            " suite",
        )
    if suites.limits_tls_1_3:
        warn_once(
            log,
            f"{CIPHER_SUITES} names some suites of TLS 1.3 only, but Python uses all of them: set"
            f" {ENABLED_PROTOCOLS}=TLSv1.2 if the others are not allowed",
        )
