"""Parsers of files and settings: properties, JAAS, PEM."""

from __future__ import annotations

import datetime
from functools import cache

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sparkmirror.config.files.properties import PropertiesEncoding, parse_properties
from sparkmirror.config.secrets.jaas import parse_jaas_config, parse_login_module
from sparkmirror.errors import ConfigError
from sparkmirror.security.tls.ssl_context import client_context, server_context
from tests.fuzz.fuzz_target import FuzzTarget, direct


def _properties(data: bytes) -> None:
    try:
        parse_properties(data, file="f", encoding=PropertiesEncoding.UTF_8)
    finally:
        parse_properties(data, file="f", encoding=PropertiesEncoding.LATIN_1)


PROPERTIES = FuzzTarget(
    name="properties",
    seeds=[
        b"clusters = A, B\nA.bootstrap.servers=a:9092\\\n  ,b:9092\n# comment\nA->B: true\n",
        b"key\\ with\\:escapes = \\u00e9\\t\\n\\uD83D\\uDE00\r\n!other comment\r\nempty=\n\\",
        "größe = ü\nname: \\u0041".encode(),
    ],
    tokens=[b"\\u", b"\\u12", b"\\\n", b"=", b":", b"\xef\xbb\xbf", b"\x00", b"\\uD800"],
    open_parser=direct(_properties),
    errors=(ConfigError,),
)


def _jaas(data: bytes) -> None:
    text = data.decode("utf-8", errors="surrogateescape")
    try:
        parse_jaas_config(text)
    except ConfigError:
        parse_login_module(text)


JAAS = FuzzTarget(
    name="JAAS",
    seeds=[
        b'a.PlainLoginModule required username="$ConnectionString" password="E=sb://x/;K=a/b+c=";',
        b"a.B required a=1 b='c\\'d' /* comment */ // line\n c=\"\\101\\n\" ; d.E optional;",
        b"software.amazon.msk.auth.iam.IAMLoginModule sufficient awsProfileName=x;",
    ],
    tokens=[b"/*", b"*/", b"//", b"'", b";", b"=", b"\\777", b"required", b"1.5", b"-", b"$"],
    open_parser=direct(_jaas),
    errors=(ConfigError,),
)


@cache
def _identity() -> tuple[bytes, bytes]:
    """A private key and its certificate as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fuzz")])
    now = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=36500))
        .sign(key, hashes.SHA256())
    )
    return (
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


def _pem(data: bytes) -> None:
    text = data.decode("latin-1")
    try:
        client_context({"ssl.truststore.certificates": text, "ssl.truststore.type": "PEM"})
    except ConfigError:
        server_context(
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": text,
                "ssl.keystore.certificate.chain": text,
            }
        )


def pem_target() -> FuzzTarget:
    """The target of PEM text. Its seeds have a new key."""
    key, certificate = _identity()
    return FuzzTarget(
        name="PEM",
        seeds=[certificate, certificate * 3, key + certificate, certificate.replace(b"\n", b" ")],
        tokens=[b"-----BEGIN CERTIFICATE-----", b"-----END ", b"-----", b"=", b"\n\n", b"A" * 64],
        open_parser=direct(_pem),
        errors=(ConfigError,),
    )
