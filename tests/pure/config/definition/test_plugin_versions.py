"""Requirements for the version of a plug-in, in Maven's notation."""

from __future__ import annotations

import pytest

from sparkmirror.config.definition.plugin_versions import (
    AvailableVersionValidator,
    PluginVersionValidator,
    satisfies_requirement,
    version_not_found_message,
)


@pytest.mark.parametrize(
    ("requirement", "met"),
    [
        ("4.3.0", True),
        ("4.3", True),
        (" 4.3.0.0 ", True),
        ("4.3.1", False),
        ("latest", True),
        ("LATEST", True),
        ("", False),
        ("[4.3.0]", True),
        ("[4.2]", False),
        ("[4.0,5.0)", True),
        ("(4.3.0,)", False),
        ("[4.3.0,)", True),
        ("(,4.3.0)", False),
        ("(,4.3.0]", True),
        ("(,)", True),
        ("[1,2],[4,5]", True),
        ("[1,2],[5,6]", False),
        ("[4.3.0-rc1,4.3.0)", False),
        ("(4.3.0-rc1,4.3.0]", True),
        ("[4.0", False),
        ("one", False),
    ],
)
def test_a_requirement_is_met_or_not(requirement: str, met: bool) -> None:
    assert satisfies_requirement(requirement) is met


@pytest.mark.parametrize(
    ("requirement", "shown"), [("9", "[9,9]"), ("[9]", "[9,9]"), ("[9,10)", "[9,10)"), ("", "[,]")]
)
def test_a_version_that_is_not_there_is_named_as_a_range(requirement: str, shown: str) -> None:
    assert version_not_found_message("x.Y", requirement) == (
        f"Plugin x.Y not found that matches the version range {shown}, available versions: [4.3.0]"
    )


def test_a_malformed_range_is_a_fault() -> None:
    for validator in (PluginVersionValidator(), AvailableVersionValidator("x.Y")):
        assert "not a range of versions" in (validator.validation_error("k", "[4.0") or "")
        assert validator.validation_error("k", None) is None
        assert validator.validation_error("k", "[4.0,5.0)") is None
    assert PluginVersionValidator().validation_error("k", "9") is None
    assert "[9,9]" in (AvailableVersionValidator("x.Y").validation_error("k", "9") or "")
