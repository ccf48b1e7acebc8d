"""Reads the ASN.1 values of keys, certificates and PKCS12 stores.

Reads DER, and the indefinite lengths and split strings of BER, which some programs write into
PKCS12 stores. Raises KeyStoreError for bytes that are neither. A length never exceeds the bytes
that are there, and values are nested to a limited depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sparkmirror.security.keystore.entries import KeyStoreError

INTEGER = 0x02
OCTET_STRING = 0x04
OBJECT_IDENTIFIER = 0x06
BMP_STRING = 0x1E
SEQUENCE = 0x30
SET = 0x31
_CONSTRUCTED = 0x20
_CONTEXT = 0x80
_INDEFINITE = 0x80
_MAX_LENGTH_BYTES = 4
_MAX_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Asn1Value:
    """One value: its tag, its content, and all of its bytes."""

    tag: int
    content: bytes = field(repr=False)
    encoded: bytes = field(repr=False)

    def children(self) -> tuple[Asn1Value, ...]:
        """The values inside a constructed value."""
        if not self.tag & _CONSTRUCTED:
            raise KeyStoreError(f"an ASN.1 value with tag {self.tag:#x} has no parts")
        return tuple(_values(self.content))

    def sequence(self, *, at_least: int = 0) -> tuple[Asn1Value, ...]:
        """The values of a SEQUENCE. Raises KeyStoreError if there are fewer."""
        values = self.expect(SEQUENCE).children()
        if len(values) < at_least:
            raise KeyStoreError("an ASN.1 sequence is too short")
        return values

    def only_child(self) -> Asn1Value:
        """The value inside an explicit tag."""
        values = self.children()
        if len(values) != 1:
            raise KeyStoreError("an ASN.1 value has another number of parts than one")
        return values[0]

    def expect(self, tag: int) -> Asn1Value:
        """Return this value. Raises KeyStoreError if it has another tag."""
        if self.tag != tag:
            raise KeyStoreError(f"an ASN.1 value has tag {self.tag:#x} instead of {tag:#x}")
        return self

    def octets(self) -> bytes:
        """The bytes of an OCTET STRING, or of a value with an implicit tag of its kind."""
        if not self.tag & _CONSTRUCTED:
            return self.content
        return b"".join(part.expect(OCTET_STRING).content for part in self.children())

    def integer(self) -> int:
        """The number of an INTEGER of at most 8 bytes."""
        content = self.expect(INTEGER).content
        if not 1 <= len(content) <= 8:
            raise KeyStoreError("an ASN.1 number is too large")
        return int.from_bytes(content, "big", signed=True)

    def object_identifier(self) -> str:
        """The numbers of an OBJECT IDENTIFIER, with dots."""
        content = self.expect(OBJECT_IDENTIFIER).content
        if not content or content[-1] & 0x80 or len(content) > 64:
            raise KeyStoreError("an ASN.1 object identifier is damaged")
        numbers, number = [], 0
        for byte in content:
            number = number << 7 | byte & 0x7F
            if not byte & 0x80:
                numbers.append(number)
                number = 0
        first = min(numbers[0] // 40, 2)
        return ".".join(str(one) for one in (first, numbers[0] - 40 * first, *numbers[1:]))


def read_asn1(data: bytes) -> Asn1Value:
    """Return the value at the start of the data. Bytes behind it are ignored."""
    value, _ = _read(data, 0, 0)
    return value


def context_tag(number: int, *, constructed: bool = True) -> int:
    """The tag of `[number]`."""
    return _CONTEXT | number | (_CONSTRUCTED if constructed else 0)


def _values(data: bytes) -> Iterator[Asn1Value]:
    at = 0
    while at < len(data):
        value, at = _read(data, at, 0)
        yield value


def _read(data: bytes, start: int, depth: int) -> tuple[Asn1Value, int]:
    if start + 2 > len(data) or depth > _MAX_DEPTH:
        raise KeyStoreError("an ASN.1 value ends too early")
    tag, length = data[start], data[start + 1]
    at = start + 2
    if tag & 0x1F == 0x1F:
        raise KeyStoreError("an ASN.1 value has a long tag")
    if length == _INDEFINITE:
        return _read_indefinite(data, start, depth)
    if length > _INDEFINITE:
        size = length & 0x7F
        if size > _MAX_LENGTH_BYTES:
            raise KeyStoreError("an ASN.1 length is too large")
        length = int.from_bytes(data[at : at + size], "big")
        at += size
    end = at + length
    if end > len(data):
        raise KeyStoreError("an ASN.1 value ends too early")
    return Asn1Value(tag, data[at:end], data[start:end]), end


def _read_indefinite(data: bytes, start: int, depth: int) -> tuple[Asn1Value, int]:
    """A value that ends with two zero bytes instead of having a length."""
    if not data[start] & _CONSTRUCTED:
        raise KeyStoreError("an ASN.1 value has no length")
    at = start + 2
    while data[at : at + 2] != b"\x00\x00":
        _, at = _read(data, at, depth + 1)
    return Asn1Value(data[start], data[start + 2 : at], data[start : at + 2]), at + 2
