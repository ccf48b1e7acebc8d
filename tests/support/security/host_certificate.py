"""A certificate for a host name of the internet, issued by an authority of the lab.

The lab's own certificates are valid for this computer only.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from sparkmirror.lab.cluster.certificates import CertificateAuthority

_DAY = timedelta(days=1)


def issue_host_certificate(authority: CertificateAuthority, host: str) -> Path:
    """Write a PEM file with a key and a certificate for a host; returns it."""
    directory = authority.ca_certificate.parent
    issuer = x509.load_pem_x509_certificate(authority.ca_certificate.read_bytes())
    signer = load_pem_private_key((directory / "ca-key.pem").read_bytes(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .sign(signer, hashes.SHA256())
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file = directory / f"{host}.pem"
    file.touch(mode=0o600)
    file.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    return file
