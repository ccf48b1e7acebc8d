"""The headers of records for transforms, by the number of a record. Pure.

Every record has a trace of its own. So many per cent of the records have a header that DropHeaders
takes away, and every tenth of those has the header by which Filter leaves a record out as well.
Such records are spread evenly, so that small batches have them, too.
"""

from __future__ import annotations

from typing import Final, TypeAlias

RecordHeaders: TypeAlias = tuple[tuple[bytes, bytes], ...]

KEPT_NAME: Final = "traceparent"
DROPPED_NAME: Final = "x-internal"
FILTERED_NAME: Final = "x-test"
MAX_BYTES: Final = 98
"""The bytes of all headers of a record that has every header, with their lengths."""
_STRIDE: Final = 37
"""Has no divisor in common with 100: each 100 consecutive records have all residues once."""


def headers_of(number: int, share: int) -> RecordHeaders:
    """Return the headers of a record; `share` per cent of the records have the dropped header."""
    headers: RecordHeaders = (
        (KEPT_NAME.encode(), b"00-%032x-%016x-01" % (number * 2**64 + number, number)),
    )
    if _residue(number) < share:
        headers += ((DROPPED_NAME.encode(), b"eu-1"),)
    if not is_kept(number, share):
        headers += ((FILTERED_NAME.encode(), b"yes"),)
    return headers


def is_kept(number: int, share: int) -> bool:
    """Return whether the record does not have the header by which Filter leaves it out."""
    residue = _residue(number)
    return residue >= share or residue % 10 != 0


def _residue(number: int) -> int:
    return number * _STRIDE % 100
