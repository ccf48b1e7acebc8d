"""When the certificates expire that a client or a listener uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkmirror.errors import ConfigError
from sparkmirror.security.tls.configured_stores import (
    read_own_certificates,
    read_trusted_certificates,
)
from sparkmirror.security.tls.ssl_config import SslConfig


def certificate_ends(config: SslConfig) -> dict[str, float]:
    """Return the ends of the stores in Unix time, by `keystore` and `truststore`. Reads files.

    A key store ends with the first one of its certificates. A trust store may hold authorities
    that ended long ago: it ends with the last one. Raises ConfigError.
    """
    ends: dict[str, float] = {}
    if config.key_store is not None:
        own = [*_ends(config.key_store.name, read_own_certificates(config.key_store))]
        if own:
            ends[config.key_store.name] = min(own)
    if config.trust_store is not None:
        trusted = read_trusted_certificates(config.trust_store)
        ends[config.trust_store.name] = max(_ends(config.trust_store.name, trusted))
    return ends


def _ends(store: str, certificates: Iterable[bytes]) -> Iterator[float]:
    # The library for certificates is slow to import: a worker without TLS does without it.
    from cryptography.x509 import load_der_x509_certificate

    for certificate in certificates:
        try:
            end = load_der_x509_certificate(certificate).not_valid_after_utc
        except ValueError as error:
            message = f"a certificate of the {store} cannot be read: {error}"
            raise ConfigError.of(f"ssl.{store}.location", message) from error
        yield end.timestamp()
