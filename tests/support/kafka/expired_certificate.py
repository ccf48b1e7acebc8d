"""A TLS listener whose certificate has expired."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_HOST = "127.0.0.1"


@contextmanager
def expired_listener(directory: Path) -> Iterator[dict[str, str]]:
    """Listen in the block; yield the client properties that trust the certificate."""
    certificate, key_store = _write_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(key_store)
    with socket.create_server((_HOST, 0)) as listener:
        threading.Thread(target=_accept, args=(listener, context), daemon=True).start()
        yield {
            "bootstrap.servers": f"{_HOST}:{listener.getsockname()[1]}",
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificate),
        }


def _accept(listener: socket.socket, context: ssl.SSLContext) -> None:
    """Shake hands with every client until the listener is closed."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection, contextlib.suppress(OSError):
            connection.settimeout(1)
            context.wrap_socket(connection, server_side=True).close()


def _write_certificate(directory: Path) -> tuple[Path, Path]:
    """Write a certificate that expired yesterday, and the same with its key; return the files."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "expired")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=30))
        .not_valid_after(now - timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(_HOST))]), critical=False
        )
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = directory / "expired.pem", directory / "expired-key-store.pem"
    for file, content in zip(files, (certificate, secret + certificate), strict=True):
        file.write_bytes(content)
    return files
