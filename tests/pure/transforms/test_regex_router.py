"""RegexRouter: the whole name matches, the first match is replaced, `$1` is a group."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.errors import TransformError
from sparkmirror.transforms.regex_replacement import expand_replacement
from sparkmirror.transforms.regex_router import RegexRouter

TOPICS = st.from_regex(r"[a-zA-Z0-9._-]{1,40}", fullmatch=True)


@given(TOPICS)
def test_a_group_is_inserted(topic: str) -> None:
    assert RegexRouter("(.*)", "copy.$1").route(topic) == f"copy.{topic}"


@given(TOPICS, TOPICS)
def test_a_name_that_does_not_match_as_a_whole_stays(topic: str, other: str) -> None:
    router = RegexRouter(re.escape(other), "routed")
    assert router.route(topic) == ("routed" if topic == other else topic)


@given(st.text(max_size=20))
def test_a_quoted_replacement_is_inserted_as_it_is(text: str) -> None:
    match = re.match("a", "a")
    assert match
    quoted = text.replace("\\", "\\\\").replace("$", "\\$")
    assert expand_replacement(match, quoted) == text


@pytest.mark.parametrize(
    ("pattern", "replacement", "expected"),
    [
        ("(a)(b)", "$2$1", "ba"),
        ("(a)b", "$12", "a2"),
        ("(?<first>a)b", "${first}!", "a!"),
        ("a|ab", "X", "Xb"),
        (".*?", "X", "Xab"),
        ("(x)?ab", "[$1]", "[]"),
    ],
)
def test_replacements_are_those_of_java(pattern: str, replacement: str, expected: str) -> None:
    assert RegexRouter(pattern, replacement).route("ab") == expected


@pytest.mark.parametrize("replacement", ["$2", "$", "$x", "\\", "${nope}", "${1}", "${open"])
def test_a_bad_replacement_fails_with_the_first_record_that_matches(replacement: str) -> None:
    router = RegexRouter("(a)", replacement)
    assert router.route("b") == "b"
    with pytest.raises(TransformError):
        router.route("a")
