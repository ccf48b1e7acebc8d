"""Readers of key stores and trust stores: JKS, JCEKS, PKCS12, and encrypted keys in PEM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from sparkmirror.errors import ConfigError
from sparkmirror.security.keystore import pbe
from sparkmirror.security.tls.ssl_context import client_context
from tests.fuzz.fuzz_target import FuzzTarget, Parse
from tests.support.golden import GOLDEN
from tests.support.security.keytool_stores import KEY_PASSWORD, STORE_PASSWORD

STORES = GOLDEN / "stores"
MAX_ITERATIONS = 2048
"""The real limit is Java's: a damaged number of iterations may take seconds and is no hang."""


def _seeds(*names: str) -> Sequence[bytes]:
    """The stores; those of keytool with fewer iterations than it allows."""
    many, few = b"\x02\x02\x27\x10", b"\x02\x02\x00\x08"
    return [(STORES / name).read_bytes().replace(many, few) for name in names]


@contextmanager
def _open_parser() -> Iterator[Parse]:
    """Use each input as key store and as trust store, with and without its passwords."""
    with TemporaryDirectory() as directory:
        file = Path(directory) / "store"
        key_store = {
            "ssl.truststore.location": str(STORES / "java17" / "ca.pem"),
            "ssl.keystore.location": str(file),
            "ssl.key.password": KEY_PASSWORD,
        }
        trust_store = {"ssl.truststore.location": str(file)}
        uses = [
            key_store,
            {**key_store, "ssl.keystore.password": STORE_PASSWORD},
            trust_store,
            {**trust_store, "ssl.truststore.password": STORE_PASSWORD},
        ]

        def use(data: bytes) -> None:
            file.write_bytes(data)
            errors = [error for error in map(_fault, uses) if error is not None]
            if errors:
                raise errors[0]

        with mock.patch.object(pbe, "MAX_ITERATIONS", MAX_ITERATIONS):
            yield use


def _fault(properties: dict[str, str]) -> ConfigError | None:
    try:
        client_context(properties)
    except ConfigError as error:
        return error
    return None


def _target(name: str, *seeds: str) -> FuzzTarget:
    return FuzzTarget(
        name=name,
        seeds=_seeds(*seeds),
        tokens=[b"\x30\x80", b"\x00\x00", b"\x04\x82", b"\x02\x04\x7f\xff\xff\xff", b"\xce" * 4],
        open_parser=_open_parser,
        errors=(ConfigError,),
        cost=4,  # it makes four TLS contexts
    )


JKS = _target("JKS", "java17/ec.jks", "java17/chain.jks", "java17/trust.jks")
JCEKS = _target("JCEKS", "java17/ec.jceks", "java17/secret-key.jceks", "java17/trust.jceks")
PKCS12 = _target(
    "PKCS12",
    "openssl/key.p12",
    "openssl/key-unprotected.p12",
    "java17/trust-mac-only.pkcs12",
)
ENCRYPTED_PEM = _target(
    "encrypted PEM",
    "openssl/encrypted-pkcs8.pem",
    "openssl/encrypted-scrypt-16.pem",
    "openssl/encrypted-traditional.pem",
)
