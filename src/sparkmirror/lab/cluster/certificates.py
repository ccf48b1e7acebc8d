"""Certificates of one cluster: its own authority, and certificates for brokers and users.

The files are PEM, which both Kafka (`ssl.keystore.type=PEM`) and Python read. For Java programs
that need a store there are PKCS12 stores with the password `changeit`: one with the authority, and
one for each key, because old brokers refuse a PEM file whose key has no password. Keys are elliptic
curve keys, because these are quick to generate. Certificates are valid for the loopback address
only, so that a leaked key of the lab is of no use. A certificate may have a fault on request.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

STORE_PASSWORD = "changeit"  # noqa: S105 - protects a public certificate, as Java's own store does
_CA_NAME = "sparkmirror lab"
_VALIDITY = timedelta(days=365)
_SKEW = timedelta(hours=1)


class CertificateFault(Enum):
    """Why a client that trusts the authority refuses a certificate."""

    EXPIRED = "expired"
    OTHER_HOST = "other host"


class CertificateAuthority:
    """The certificates of one cluster, in one directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @classmethod
    def create(cls, directory: Path) -> Self:
        """Create an authority. Only the owner of the directory can read the authority's key."""
        directory.mkdir(parents=True, mode=0o700)
        authority = cls(directory)
        key = ec.generate_private_key(ec.SECP256R1())
        name = _common_name(_CA_NAME)
        certificate = (
            _certificate_builder(name, name, key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_CA_KEY_USAGE, critical=True)
            .sign(key, hashes.SHA256())
        )
        _write_secret(authority._ca_key_file, _pem(key))
        authority.ca_certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
        entry = pkcs12.PKCS12Certificate(certificate, _CA_NAME.encode())
        authority.trust_store.write_bytes(
            pkcs12.serialize_java_truststore(
                [entry], BestAvailableEncryption(STORE_PASSWORD.encode())
            )
        )
        return authority

    @property
    def ca_certificate(self) -> Path:
        """The authority's certificate, as PEM."""
        return self._directory / "ca.pem"

    @property
    def trust_store(self) -> Path:
        """The authority's certificate as a PKCS12 trust store for Java."""
        return self._directory / "truststore.p12"

    def key_store(self, name: str) -> Path:
        """Return the PEM file with the key and certificate chain of a broker or user."""
        return self._directory / f"{name}.pem"

    def java_key_store(self, name: str) -> Path:
        """Return the PKCS12 store with the same content."""
        return self._directory / f"{name}.p12"

    def issue(self, name: str, fault: CertificateFault | None = None) -> Path:
        """Create a key and a certificate `CN=<name>`, valid for the loopback address.

        Replaces an earlier one of that name. Returns their PEM file.
        """
        issuer = x509.load_pem_x509_certificate(self.ca_certificate.read_bytes())
        signer = load_pem_private_key(self._ca_key_file.read_bytes(), password=None)
        if not isinstance(signer, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{self._ca_key_file} does not hold the key this module wrote")
        key = ec.generate_private_key(ec.SECP256R1())
        uses = x509.ExtendedKeyUsage(
            [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        )
        certificate = (
            _certificate_builder(
                _common_name(name),
                issuer.subject,
                key.public_key(),
                validity=-_SKEW / 2 if fault is CertificateFault.EXPIRED else _VALIDITY,
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName(
                    _OTHER_NAMES if fault is CertificateFault.OTHER_HOST else _LOOPBACK_NAMES
                ),
                critical=False,
            )
            .add_extension(uses, critical=False)
            .add_extension(_authority_key_identifier(signer.public_key()), critical=False)
            .sign(signer, hashes.SHA256())
        )
        chain = certificate.public_bytes(Encoding.PEM) + issuer.public_bytes(Encoding.PEM)
        _write_secret(self.key_store(name), _pem(key) + chain)
        encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
        store = pkcs12.serialize_key_and_certificates(
            name.encode(), key, certificate, [issuer], encryption
        )
        _write_secret(self.java_key_store(name), store)
        return self.key_store(name)

    @property
    def _ca_key_file(self) -> Path:
        return self._directory / "ca-key.pem"


_LOOPBACK_NAMES = [
    x509.DNSName("localhost"),
    x509.IPAddress(ip_address("127.0.0.1")),
    x509.IPAddress(ip_address("::1")),
]
_OTHER_NAMES = [x509.DNSName("other-host.invalid")]
_CA_KEY_USAGE = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate_builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    validity: timedelta = _VALIDITY,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + validity)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _authority_key_identifier(key: ec.EllipticCurvePublicKey) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write_secret(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
