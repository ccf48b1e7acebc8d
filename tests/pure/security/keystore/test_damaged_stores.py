"""Stores that end early or have hostile lengths are refused at once; tests/fuzz tries more."""

from __future__ import annotations

import tracemalloc

import pytest

from sparkmirror.security.keystore import pbe
from sparkmirror.security.keystore.entries import KeyStoreError
from sparkmirror.security.keystore.keystore import read_store
from tests.support.golden import GOLDEN
from tests.support.security.keytool_stores import STORE_PASSWORD

STORES = GOLDEN / "stores"
ALL_STORES = [
    *("java17/chain.jks", "java17/secret-key.jceks", "java17/trust.jks", "java17/ca.pem"),
    *("openssl/key.p12", "openssl/key-unprotected.p12", "java17/trust-mac-only.pkcs12"),
]
QUICK_ITERATIONS = 2048
"""The real limit is Java's; many stores with as many iterations take hours."""


def quick_content(name: str) -> bytes:
    """The store, with fewer iterations where keytool has a lower limit for them."""
    content = (STORES / name).read_bytes()
    return content.replace(b"\x02\x02\x27\x10", b"\x02\x02\x00\x08")


@pytest.mark.parametrize("name", ALL_STORES)
def test_a_store_that_ends_early_is_never_used_whole(name: str) -> None:
    content = quick_content(name)
    password = STORE_PASSWORD if name == "openssl/key.p12" else None
    whole = read_store(content, password)
    for end in range(0, len(content) - 1, 7):
        try:
            found = read_store(content[:end], password)
        except KeyStoreError:
            continue
        assert len(found.trusted_certificates) <= len(whole.trusted_certificates)
        assert found != whole or found.store_type == "PEM"


@pytest.mark.parametrize("name", ALL_STORES)
def test_a_hostile_length_takes_no_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pbe, "MAX_ITERATIONS", QUICK_ITERATIONS)
    content = quick_content(name)
    tracemalloc.start()
    try:
        for at in range(min(len(content), 400)):
            for number in (b"\xff\xff\xff\xff", b"\x84\x7f\xff\xff\xff"):
                hostile = content[:at] + number + content[at + 4 :]
                try:
                    read_store(hostile, None)
                except KeyStoreError:
                    continue
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
