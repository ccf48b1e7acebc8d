"""Assertions that a client signs, verified by an independent library call."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from sparkmirror.config.secrets.password import Password
from sparkmirror.security.oauthbearer.assertion import AssertionFile, SignedAssertion
from sparkmirror.security.sasl_credentials import TokenUnavailable

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def write_key(
    directory: Path, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, passphrase: str = ""
) -> str:
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase:
        encryption = serialization.BestAvailableEncryption(passphrase.encode())
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
    )
    file = directory / "key.pem"
    file.write_bytes(pem)
    return str(file)


def parts(assertion: Password) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    header, claims, signature = assertion.value.split(".")
    return (
        json.loads(decoded(header)),
        json.loads(decoded(claims)),
        f"{header}.{claims}".encode(),
        decoded(signature),
    )


def test_rs256_is_a_valid_signature_of_header_and_claims(tmp_path: Path) -> None:
    source = SignedAssertion(
        algorithm="RS256",
        private_key_file=write_key(tmp_path, RSA_KEY, "pass-phrase"),
        passphrase=Password("pass-phrase"),
        claims=frozenset({("iss", "mirror"), ("aud", "https://idp")}),
    )
    header, claims, signed, signature = parts(source.assertion())
    assert header == {"alg": "RS256", "typ": "JWT"}
    assert (claims["iss"], claims["aud"]) == ("mirror", "https://idp")
    assert claims["exp"] - claims["iat"] == 300
    assert claims["iat"] - claims["nbf"] == 60
    RSA_KEY.public_key().verify(signature, signed, padding.PKCS1v15(), hashes.SHA256())


def test_es256_is_the_two_numbers_of_the_signature(tmp_path: Path) -> None:
    source = SignedAssertion(algorithm="ES256", private_key_file=write_key(tmp_path, EC_KEY))
    _, _, signed, signature = parts(source.assertion())
    assert len(signature) == 64
    numbers = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
    EC_KEY.public_key().verify(encode_dss_signature(*numbers), signed, ec.ECDSA(hashes.SHA256()))


def test_the_template_overrides_the_claims_and_the_time_overrides_the_template(
    tmp_path: Path,
) -> None:
    template = tmp_path / "template.json"
    template.write_text(
        json.dumps({"header": {"kid": "k1", "alg": "none"}, "payload": {"iss": "t", "exp": 1}})
    )
    source = SignedAssertion(
        algorithm="RS256",
        private_key_file="unused",
        template_file=str(template),
        claims=frozenset({("iss", "config"), ("sub", "s")}),
        expires_in_s=10,
        valid_before_s=5,
        includes_id=True,
    )
    header, claims = source.content(1000)
    assert header == {"kid": "k1", "alg": "RS256", "typ": "JWT"}
    assert claims.pop("jti") != source.content(1000)[1]["jti"]
    assert claims == {"iss": "t", "sub": "s", "iat": 1000, "exp": 1010, "nbf": 995}


def test_a_ready_assertion_is_read_again_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    source = AssertionFile(file=str(file))
    for text in ("one", "two"):
        file.write_text(f"{text}\n")
        assert source.assertion() == Password(text)


@pytest.mark.parametrize(
    ("key", "template", "message"),
    [
        ("not pem", "", "holds no private key in PEM"),
        ("missing", "", "cannot be read"),
        ("rsa", "", "holds no key for ES256"),
        ("rsa", "[1]", "is not a template"),
        ("rsa", '{"header": 5}', "is not a template"),
    ],
)
def test_a_key_or_template_that_cannot_be_used_is_named_and_never_quoted(
    tmp_path: Path, key: str, template: str, message: str
) -> None:
    key_file = tmp_path / "key.pem"
    if key == "rsa":
        write_key(tmp_path, RSA_KEY)
    elif key != "missing":
        key_file.write_text("s3cret")
    template_file = tmp_path / "template.json"
    template_file.write_text(template)
    source = SignedAssertion(
        algorithm="ES256",
        private_key_file=str(key_file),
        template_file=str(template_file) if template else "",
    )
    with pytest.raises(TokenUnavailable, match=message) as caught:
        source.assertion()
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(("mode", "warnings"), [(0o644, 1), (0o600, 0)])
def test_a_file_of_tokens_that_others_may_read_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: int, warnings: int
) -> None:
    file = tmp_path / "token"
    file.write_text("secret-token", encoding="utf-8")
    file.chmod(mode)
    for _ in range(2):
        assert AssertionFile(file=str(file)).assertion() == Password("secret-token")
    assert [str(file) in message for message in caplog.messages] == [True] * warnings
    assert "secret-token" not in caplog.text
