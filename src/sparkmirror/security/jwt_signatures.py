"""Signatures of JSON Web Tokens: RS256 and ES256."""

from __future__ import annotations

from sparkmirror.config.secrets.password import Password

ALGORITHMS = ("RS256", "ES256")


def sign(algorithm: str, private_key: str, passphrase: Password | None, content: bytes) -> bytes:
    """Sign with a private key in PEM. Raises ValueError if the key does not fit.

    The text of the error holds nothing of the key.
    """
    # Loading the library takes longer than all other imports of a login, and few logins sign.
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils

    secret = passphrase.value.encode() if passphrase is not None else None
    try:
        key = serialization.load_pem_private_key(private_key.encode(), secret)
    except (ValueError, TypeError):
        message = "it holds no private key in PEM, or its passphrase does not open it"
        raise ValueError(message) from None
    if algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(content, padding.PKCS1v15(), hashes.SHA256())
    if (
        algorithm == "ES256"
        and isinstance(key, ec.EllipticCurvePrivateKey)
        and isinstance(key.curve, ec.SECP256R1)
    ):
        r, s = utils.decode_dss_signature(key.sign(content, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    raise ValueError(f"it holds no key for {algorithm}")
