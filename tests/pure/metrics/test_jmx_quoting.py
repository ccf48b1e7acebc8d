"""Labels are quoted as the names of MBeans are."""

from __future__ import annotations

import pytest

from sparkmirror.metrics.jmx_quoting import jmx_sanitize


@pytest.mark.parametrize("value", ["orders", "a.b-c_d", "50% of it", "", "x\ty"])
def test_plain_values_stay(value: str) -> None:
    assert jmx_sanitize(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("A->B.MirrorSourceConnector", '"A->B.MirrorSourceConnector"'),
        ("connect-127.0.0.1:8083", '"connect-127.0.0.1:8083"'),
        ("grün", '"grün"'),
        ('a"b', '"a\\"b"'),
        ("a*b?", '"a\\*b\\?"'),
        ("a\\b", '"a\\\\b"'),
        ("a\nb", '"a\\nb"'),
    ],
)
def test_other_values_are_quoted_as_a_whole(value: str, expected: str) -> None:
    assert jmx_sanitize(value) == expected
