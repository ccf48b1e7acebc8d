"""TLS contexts out of Java's `ssl.*` settings, as far as they are PEM.

Trust from `ssl.truststore.location` or, inline, `ssl.truststore.certificates`; an own identity
from `ssl.keystore.location` or `ssl.keystore.key` with `ssl.keystore.certificate.chain`. Python's
OpenSSL wants key material in files, so an inline key goes through a file that lies in memory
only, where the system has such files. Messages name the property, never a value that is secret.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sparkmirror.errors import ConfigError

_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_TLS_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def client_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Build the context of a client that checks the brokers' certificates."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != ""
    made.minimum_version, made.maximum_version = _tls_versions(properties)
    _load_truststore(made, properties)
    _load_keystore(made, properties)
    return made


def server_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Build the context of a server with a key of its own, which may ask callers for theirs."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version, made.maximum_version = _tls_versions(properties)
    if not any(key in properties for key in ("ssl.keystore.location", "ssl.keystore.key")):
        key = "ssl.keystore.location"
        raise ConfigError.of(key, f"{key} is missing: a server over TLS needs a key")
    _load_keystore(made, properties)
    wanted = properties.get("ssl.client.auth", "none")
    if wanted != "none":
        _load_truststore(made, properties)
        made.verify_mode = ssl.CERT_REQUIRED if wanted == "required" else ssl.CERT_OPTIONAL
    return made


def rewrap_pem(pem: str) -> str:
    """Break PEM blocks into lines as OpenSSL needs them; Java takes them on one line too."""
    blocks = [
        "\n".join(
            [f"-----BEGIN {kind}-----", *textwrap.wrap("".join(body.split()), 64)]
            + [f"-----END {kind}-----\n"]
        )
        for kind, body in _PEM_BLOCK.findall(pem)
    ]
    return "".join(blocks)


def _tls_versions(properties: Mapping[str, str]) -> tuple[ssl.TLSVersion, ssl.TLSVersion]:
    names = properties.get("ssl.enabled.protocols", ",".join(_TLS_VERSIONS)).split(",")
    known = sorted(_TLS_VERSIONS[name.strip()] for name in names if name.strip() in _TLS_VERSIONS)
    if not known:
        raise ConfigError.of(
            "ssl.enabled.protocols",
            f"ssl.enabled.protocols must hold one of {', '.join(_TLS_VERSIONS)}",
        )
    return known[0], known[-1]


def _load_truststore(made: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    inline = properties.get("ssl.truststore.certificates")
    location = properties.get("ssl.truststore.location")
    if inline:
        pem = rewrap_pem(inline)
        key = "ssl.truststore.certificates"
    elif location:
        pem = _read_pem(location, "ssl.truststore.location")
        key = "ssl.truststore.location"
    else:
        made.load_default_certs()
        return
    try:
        made.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError):
        raise ConfigError.of(key, f"{key} holds no certificate that can be read") from None


def _load_keystore(made: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    password = properties.get("ssl.key.password")
    inline = properties.get("ssl.keystore.key")
    location = properties.get("ssl.keystore.location")
    if inline:
        pem = rewrap_pem(inline) + rewrap_pem(properties.get("ssl.keystore.certificate.chain", ""))
        key = "ssl.keystore.key"
    elif location:
        pem = _read_pem(location, "ssl.keystore.location")
        key = "ssl.keystore.location"
    else:
        return
    try:
        with _secret_file(pem) as path:
            # Without a password OpenSSL would ask for one on the terminal: an empty one fails.
            made.load_cert_chain(path, password=password or "")
    except (ssl.SSLError, ValueError):
        raise ConfigError.of(
            key, f"{key} holds no key with its certificates, or ssl.key.password does not open it"
        ) from None


def _read_pem(location: str, key: str) -> str:
    try:
        content = Path(location).read_bytes()
    except OSError as error:
        raise ConfigError.of(key, f"{key}: {location} cannot be read: {error.strerror}") from error
    if b"-----BEGIN " not in content:
        raise ConfigError.of(key, f"{key}: {location} is not PEM: convert it with keytool/openssl")
    return rewrap_pem(content.decode("ascii", errors="replace"))


@contextmanager
def _secret_file(secret: str) -> Iterator[str]:
    """Lend a path that holds the secret for as long as the block lasts."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("identity")
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secret)
            file.flush()
            yield f"/proc/self/fd/{descriptor}"
    else:
        with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
            file.write(secret)
            file.flush()
            yield file.name
