"""Stores of keytool with the certificates of the lab, as users of Java's clients have them."""

from __future__ import annotations

from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    load_pem_private_key,
    pkcs12,
)

from sparkmirror.java.java_runtime import find_java
from sparkmirror.lab.cluster.certificates import CertificateAuthority
from tests.support.security.keytool_stores import KEY_PASSWORD, STORE_PASSWORD, Keytool


def find_keytool() -> Keytool:
    """Return the keytool of the Java that runs the lab."""
    program = find_java().path.resolve().with_name("keytool")
    assert program.exists(), f"there is no {program}"
    return Keytool(program)


def write_trust_store(authority: CertificateAuthority, store: Path) -> None:
    """Replace a store by one that trusts an authority. Its password is STORE_PASSWORD.

    keytool writes PKCS12, whatever the name of the file.
    """
    made = store.with_suffix(".new")
    find_keytool().trust(made, authority.ca_certificate)
    made.rename(store)


def write_key_store(authority: CertificateAuthority, name: str, store: Path) -> None:
    """Replace a JKS store by one with the key and the certificate of a user.

    The password of the store is STORE_PASSWORD, that of the key is KEY_PASSWORD.
    """
    pem = authority.key_store(name).read_bytes()
    key = load_pem_private_key(pem, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    certificate, *chain = x509.load_pem_x509_certificates(pem)
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    p12, made = store.with_suffix(".p12"), store.with_suffix(".new")
    p12.write_bytes(
        pkcs12.serialize_key_and_certificates(b"me", key, certificate, chain, encryption)
    )
    find_keytool().convert(p12, made, "jks", key_password=KEY_PASSWORD)
    p12.unlink()
    made.rename(store)


def trust_store_properties(store: Path) -> dict[str, str]:
    """Return the client properties of a trust store."""
    return {
        "ssl.truststore.location": str(store),
        "ssl.truststore.password": STORE_PASSWORD,
    }


def key_store_properties(store: Path) -> dict[str, str]:
    """Return the client properties of a key store."""
    return {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": KEY_PASSWORD,
    }
