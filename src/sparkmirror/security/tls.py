"""TLS contexts from the `ssl.*` keys of Java's clients, with PEM stores.

Certificates of authorities are in `ssl.truststore.location` or inline in
`ssl.truststore.certificates`. The own key is in `ssl.keystore.location`, or inline in
`ssl.keystore.key` with `ssl.keystore.certificate.chain`. Python reads keys only from files, so an
inline key is written to a file in memory if the system has such files.
Errors name the key of the setting, never a secret value.
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
    """Return the context of a client that verifies the brokers' certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = properties.get("ssl.endpoint.identification.algorithm", "https") != ""
    context.minimum_version, context.maximum_version = _tls_versions(properties)
    _load_truststore(context, properties)
    _load_keystore(context, properties)
    return context


def server_context(properties: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of a server. `ssl.client.auth` decides about client certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version, context.maximum_version = _tls_versions(properties)
    if not any(key in properties for key in ("ssl.keystore.location", "ssl.keystore.key")):
        key = "ssl.keystore.location"
        raise ConfigError.of(key, f"{key} is missing: a server over TLS needs a key")
    _load_keystore(context, properties)
    client_auth = properties.get("ssl.client.auth", "none")
    if client_auth != "none":
        _load_truststore(context, properties)
        context.verify_mode = ssl.CERT_REQUIRED if client_auth == "required" else ssl.CERT_OPTIONAL
    return context


def rewrap_pem(pem: str) -> str:
    """Break PEM blocks into the lines that OpenSSL needs. Java accepts one line, too."""
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
    supported = sorted(
        _TLS_VERSIONS[name.strip()] for name in names if name.strip() in _TLS_VERSIONS
    )
    if not supported:
        raise ConfigError.of(
            "ssl.enabled.protocols",
            f"ssl.enabled.protocols must hold one of {', '.join(_TLS_VERSIONS)}",
        )
    return supported[0], supported[-1]


def _load_truststore(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
    inline = properties.get("ssl.truststore.certificates")
    location = properties.get("ssl.truststore.location")
    if inline:
        pem = rewrap_pem(inline)
        key = "ssl.truststore.certificates"
    elif location:
        pem = _read_pem(location, "ssl.truststore.location")
        key = "ssl.truststore.location"
    else:
        context.load_default_certs()
        return
    try:
        context.load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError, TypeError):  # TypeError: not ASCII
        raise ConfigError.of(key, f"{key} holds no certificate that can be read") from None


def _load_keystore(context: ssl.SSLContext, properties: Mapping[str, str]) -> None:
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
            context.load_cert_chain(path, password=password or "")
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
    """Yield a path to a file with the secret. The file exists until the block ends."""
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
