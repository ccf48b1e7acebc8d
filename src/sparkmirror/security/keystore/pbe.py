"""Password-based encryption: how stores encrypt keys and certificates.

    PBES2 of PKCS#5     PBKDF2 or scrypt, with AES or triple DES: newer programs
    PKCS#12             SHA-1, with triple DES or RC2: Java 8, OpenSSL 1
    two of Sun          for the keys in JKS and JCEKS stores

The work that a store asks for is limited, so that a damaged or hostile store cannot block a
process: iterations as in Java, and the memory of scrypt.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import BlockCipherAlgorithm, Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from sparkmirror.security.keystore.der import OCTET_STRING, SEQUENCE, Asn1Value
from sparkmirror.security.keystore.entries import KeyStoreError, WrongPassword
from sparkmirror.security.keystore.pkcs12_kdf import KeyPurpose, bmp_password, derive_key
from sparkmirror.security.keystore.rc2 import decrypt_rc2_cbc
from sparkmirror.security.keystore.sun_key_protector import decrypt_jks_key, derive_jceks_key

MAX_ITERATIONS = 5_000_000
"""The limit of Java."""
_MAX_SCRYPT_BYTES = 1 << 27

_PBES2 = "1.2.840.113549.1.5.13"
_PBKDF2 = "1.2.840.113549.1.5.12"
_SCRYPT = "1.3.6.1.4.1.11591.4.11"
_JKS_KEY_PROTECTOR = "1.3.6.1.4.1.42.2.17.1.1"
_JCEKS_MD5_TRIPLE_DES = "1.3.6.1.4.1.42.2.19.1"
_PKCS12_TRIPLE_DES = {"1.2.840.113549.1.12.1.3": 24, "1.2.840.113549.1.12.1.4": 16}
_PKCS12_RC2 = {"1.2.840.113549.1.12.1.5": 16, "1.2.840.113549.1.12.1.6": 5}
_AES_KEY_BYTES = {
    "2.16.840.1.101.3.4.1.2": 16,
    "2.16.840.1.101.3.4.1.22": 24,
    "2.16.840.1.101.3.4.1.42": 32,
}
_TRIPLE_DES_CBC = "1.2.840.113549.3.7"
_HMAC_HASHES = {
    "1.2.840.113549.2.7": "sha1",
    "1.2.840.113549.2.8": "sha224",
    "1.2.840.113549.2.9": "sha256",
    "1.2.840.113549.2.10": "sha384",
    "1.2.840.113549.2.11": "sha512",
    "1.2.840.113549.2.12": "sha512_224",
    "1.2.840.113549.2.13": "sha512_256",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptionAlgorithm:
    """An AlgorithmIdentifier of ASN.1: the number of the algorithm and its parameters."""

    identifier: str
    parameters: Asn1Value | None

    @classmethod
    def read(cls, value: Asn1Value) -> EncryptionAlgorithm:
        """Read a SEQUENCE of a number and parameters. Raises KeyStoreError."""
        parts = value.sequence(at_least=1)
        return cls(
            identifier=parts[0].object_identifier(),
            parameters=parts[1] if len(parts) > 1 else None,
        )

    def parameter_sequence(self, *, at_least: int) -> tuple[Asn1Value, ...]:
        """The parameters. Raises KeyStoreError if there are fewer."""
        if self.parameters is None:
            raise KeyStoreError("an encryption algorithm has no parameters")
        return self.parameters.sequence(at_least=at_least)


def decrypt(algorithm: EncryptionAlgorithm, data: bytes, password: str) -> bytes:
    """Return the plain text. Raises WrongPassword, and KeyStoreError if the form is unknown.

    A wrong password is not always noticed here: then the plain text is no valid ASN.1.
    """
    identifier = algorithm.identifier
    if identifier == _JKS_KEY_PROTECTOR:
        return decrypt_jks_key(data, password)
    if identifier == _PBES2:
        return _decrypt_pbes2(algorithm, data, password)
    if identifier == _JCEKS_MD5_TRIPLE_DES:
        salt, iterations = _salt_and_iterations(algorithm)
        key, iv = derive_jceks_key(salt, iterations, password)
        return _decrypt_cbc(TripleDES(key), iv, data)
    if identifier in _PKCS12_TRIPLE_DES:
        key, iv = _derive_pkcs12(algorithm, password, _PKCS12_TRIPLE_DES[identifier])
        return _decrypt_cbc(TripleDES(key if len(key) == 24 else key + key[:8]), iv, data)
    if identifier in _PKCS12_RC2:
        key, iv = _derive_pkcs12(algorithm, password, _PKCS12_RC2[identifier])
        if not data or len(data) % 8:
            raise KeyStoreError("encrypted data has no whole blocks")
        return _without_padding(decrypt_rc2_cbc(key, iv, data), 8)
    raise KeyStoreError(f"the encryption algorithm {identifier} is not supported")


def check_iterations(iterations: int) -> int:
    """Return the number. Raises KeyStoreError if it is not between 1 and Java's limit."""
    if not 1 <= iterations <= MAX_ITERATIONS:
        raise KeyStoreError(f"its keys need {iterations} iterations; {MAX_ITERATIONS} are allowed")
    return iterations


def _salt_and_iterations(algorithm: EncryptionAlgorithm) -> tuple[bytes, int]:
    salt, iterations = algorithm.parameter_sequence(at_least=2)[:2]
    return salt.expect(OCTET_STRING).content, check_iterations(iterations.integer())


def _derive_pkcs12(
    algorithm: EncryptionAlgorithm, password: str, key_bytes: int
) -> tuple[bytes, bytes]:
    salt, iterations = _salt_and_iterations(algorithm)
    secret = bmp_password(password)
    return (
        derive_key("sha1", secret, salt, iterations, KeyPurpose.ENCRYPTION, key_bytes),
        derive_key("sha1", secret, salt, iterations, KeyPurpose.IV, 8),
    )


def _decrypt_pbes2(algorithm: EncryptionAlgorithm, data: bytes, password: str) -> bytes:
    derivation, encryption = (
        EncryptionAlgorithm.read(part) for part in algorithm.parameter_sequence(at_least=2)[:2]
    )
    is_triple_des = encryption.identifier == _TRIPLE_DES_CBC
    key_bytes = 24 if is_triple_des else _AES_KEY_BYTES.get(encryption.identifier)
    if key_bytes is None or encryption.parameters is None:
        raise KeyStoreError(f"the encryption algorithm {encryption.identifier} is not supported")
    iv = encryption.parameters.expect(OCTET_STRING).content
    key = _derive_pbes2_key(derivation, password, key_bytes)
    return _decrypt_cbc(TripleDES(key) if is_triple_des else AES(key), iv, data)


def _derive_pbes2_key(derivation: EncryptionAlgorithm, password: str, key_bytes: int) -> bytes:
    if derivation.identifier == _SCRYPT:
        salt, *numbers = derivation.parameter_sequence(at_least=4)[:4]
        n, r, p = (number.integer() for number in numbers)
        if min(n, r, p) < 1 or 128 * n * r * p > _MAX_SCRYPT_BYTES:
            raise KeyStoreError("its keys need too much work of scrypt")
        try:
            return hashlib.scrypt(
                password.encode("utf-8"),
                salt=salt.expect(OCTET_STRING).content,
                n=n,
                r=r,
                p=p,
                maxmem=2 * _MAX_SCRYPT_BYTES,
                dklen=key_bytes,
            )
        except ValueError as error:
            raise KeyStoreError("its parameters of scrypt are not valid") from error
    if derivation.identifier != _PBKDF2:
        raise KeyStoreError(f"the key derivation {derivation.identifier} is not supported")
    salt, iterations, *others = derivation.parameter_sequence(at_least=2)
    hash_name = "sha1"
    for other in others:
        if other.tag == SEQUENCE:  # the other optional parameter is the length of the key
            hash_name = _hmac_hash(EncryptionAlgorithm.read(other).identifier)
    return hashlib.pbkdf2_hmac(
        hash_name,
        password.encode("utf-8"),
        salt.expect(OCTET_STRING).content,
        check_iterations(iterations.integer()),
        key_bytes,
    )


def _hmac_hash(identifier: str) -> str:
    if identifier not in _HMAC_HASHES:
        raise KeyStoreError(f"the HMAC {identifier} is not supported")
    return _HMAC_HASHES[identifier]


def _decrypt_cbc(algorithm: BlockCipherAlgorithm, iv: bytes, data: bytes) -> bytes:
    block_bytes = algorithm.block_size // 8
    if not data or len(data) % block_bytes or len(iv) != block_bytes:
        raise KeyStoreError("encrypted data has no whole blocks")
    decryptor = Cipher(algorithm, CBC(iv)).decryptor()
    return _without_padding(decryptor.update(data) + decryptor.finalize(), block_bytes)


def _without_padding(plain: bytes, block_bytes: int) -> bytes:
    size = plain[-1]
    if not 1 <= size <= block_bytes or plain[-size:] != bytes([size]) * size:
        raise WrongPassword("the password does not open it")
    return plain[:-size]
