"""One text per cause for the failed requests of many topics or groups."""

from __future__ import annotations

from sparkmirror.connect.connectors.shared.errors_by_cause import describe_errors_by_cause
from sparkmirror.errors import ClusterError, NotAuthorized


def refused(name: str) -> ClusterError:
    return NotAuthorized("A", f"OffsetFetch answered NO: {name}; grant Describe on the group")


def test_errors_that_differ_only_in_the_name_are_one_text_with_a_count() -> None:
    assert describe_errors_by_cause(
        {name: refused(name) for name in ("b", "a", "c.a")}, "group"
    ) == ("a and 2 more groups: A: OffsetFetch answered NO: a; grant Describe on the group")


def test_another_cause_has_its_own_text() -> None:
    errors = {"a": refused("a"), "b": ClusterError("A", "b has no coordinator")}
    assert describe_errors_by_cause(errors, "group") == (
        "a: A: OffsetFetch answered NO: a; grant Describe on the group; b: A: b has no coordinator"
    )


def test_no_error_is_no_text() -> None:
    assert describe_errors_by_cause({}, "group") == ""
