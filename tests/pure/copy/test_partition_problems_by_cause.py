"""One text per cause, with the first name and a count."""

from __future__ import annotations

from sparkmirror.copy.partition_problems_by_cause import (
    MAX_CAUSES,
    cause_texts,
    first_causes,
    same_causes,
    without_known,
)

REFUSED = "source primary: PLAINTEXT 127.0.0.1:9092: connection refused; check the broker"


def test_partitions_with_one_reason_share_one_text_and_the_largest_cause_comes_first() -> None:
    reasons = [("big-0", "the record at offset 5 is too large")]
    reasons += [(f"orders-{number}", REFUSED) for number in range(80)]
    assert cause_texts(reasons) == [
        f"orders-0 and 79 more partitions: {REFUSED}",
        "big-0: the record at offset 5 is too large",
    ]


def test_partition_without_reason_has_no_text() -> None:
    assert cause_texts([("orders-0", "")]) == []


def test_one_more_is_singular_and_the_noun_can_be_another() -> None:
    found = cause_texts([("a", REFUSED), ("b", REFUSED)], "connector")
    assert found == [f"a and 1 more connector: {REFUSED}"]


def test_a_text_with_a_reason_that_is_known_is_left_out() -> None:
    texts = [f"positions are not written: {REFUSED}", "offset syncs are not written: too large"]
    assert without_known(texts, [REFUSED, ""]) == texts[1:]
    assert without_known(texts, [""]) == texts


def test_causes_beyond_the_first_are_counted() -> None:
    texts = [f"t-{number}: cause {number}" for number in range(MAX_CAUSES + 2)]
    assert first_causes(texts) == [*texts[:MAX_CAUSES], "and 2 more causes"]
    assert first_causes(texts[:MAX_CAUSES]) == texts[:MAX_CAUSES]
    assert first_causes(texts[: MAX_CAUSES + 1])[-1] == "and 1 more cause"


def joined(reasons: dict[str, str]) -> str:
    return "; ".join(first_causes(cause_texts(reasons.items())))


def test_other_names_and_counts_of_a_cause_are_the_same_causes() -> None:
    both = {"a-0": REFUSED, "a-1": REFUSED, "b-0": "too large"}
    assert same_causes(joined(both), joined({"a-1": REFUSED, "b-0": "too large"}))
    assert same_causes(
        joined(both), joined({"a-1": REFUSED, "b-0": "too large", "b-1": "too large"})
    )
    assert same_causes(
        joined({"orders-0": REFUSED}), joined({f"orders-{number}": REFUSED for number in range(9)})
    )


def test_another_reason_or_the_end_of_one_is_another_cause() -> None:
    both = {"a-0": REFUSED, "b-0": "too large"}
    assert not same_causes(joined(both), joined({"a-0": REFUSED}))
    assert not same_causes(joined({"a-0": REFUSED}), "")
    assert not same_causes(joined({"a-0": REFUSED}), joined({"a-0": "too large"}))
    assert not same_causes("source A: down", "source B: down")
