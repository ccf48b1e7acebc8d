"""The release of a broker, from its API versions."""

from __future__ import annotations

import pytest

from sparkmirror.cli.check.broker_checks import release_of


@pytest.mark.parametrize(
    ("fetch", "release"),
    [((0, 10), "2.1"), ((0, 12), "2.7"), ((0, 17), "3.9"), ((4, 17), "4.0"), ((4, 18), "4.1")],
)
def test_the_versions_of_fetch_tell_the_release(fetch: tuple[int, int], release: str) -> None:
    assert release_of({1: fetch}) == release


def test_an_unknown_broker_has_no_release() -> None:
    assert release_of({}) == ""
