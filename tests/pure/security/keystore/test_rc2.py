"""RC2 decrypts the examples of RFC 2268."""

from __future__ import annotations

import pytest

from sparkmirror.security.keystore.rc2 import decrypt_rc2_cbc


@pytest.mark.parametrize(
    ("key", "plain", "encrypted"),
    [
        ("ffffffffffffffff", "ffffffffffffffff", "278b27e42e2f0d49"),
        ("3000000000000000", "1000000000000001", "30649edf9be7d2c2"),
        ("88bca90e90875a7f0f79c384627bafb2", "0000000000000000", "2269552ab0f85ca6"),
    ],
)
def test_a_block_is_decrypted(key: str, plain: str, encrypted: str) -> None:
    found = decrypt_rc2_cbc(bytes.fromhex(key), bytes(8), bytes.fromhex(encrypted))
    assert found.hex() == plain


def test_each_block_is_combined_with_the_one_before() -> None:
    key, block = bytes.fromhex("3000000000000000"), bytes.fromhex("30649edf9be7d2c2")
    plain = decrypt_rc2_cbc(key, bytes(8), block * 2)
    assert plain[:8].hex() == "1000000000000001"
    assert bytes(a ^ b for a, b in zip(plain[8:], block, strict=True)) == plain[:8]
