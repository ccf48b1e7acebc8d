"""The order in which keys are tried is that of Java's key manager."""

from __future__ import annotations

from sparkmirror.security.keystore.entries import KeyEncoding, PrivateKeyEntry
from sparkmirror.security.keystore.key_choice import in_java_order
from tests.support.golden import golden_json


def test_keys_are_in_the_order_of_the_key_manager_of_java() -> None:
    rows = golden_json("stores/key_choice.json")
    assert len(rows) == 20
    for row in rows:
        entries = [
            PrivateKeyEntry(
                alias=alias, encoded_key=b"", encoding=KeyEncoding.PKCS8, certificate_chain=()
            )
            for alias in row["aliases"]
        ]
        assert [entry.alias for entry in in_java_order(entries)] == row["java"]
