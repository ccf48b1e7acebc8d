"""The examples of docs/transforms.md are true; `tests/spark/test_queries.py` has those of Spark."""

from __future__ import annotations

import re

import pytest

from sparkmirror.cli.transform.trial import try_transformations
from sparkmirror.transforms.configuration.connector_transformer import tolerates_errors
from tests.support.cli.transforms_page import EXAMPLES, connector_config, source_record


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_the_page_shows_what_becomes_of_records(number: int) -> None:
    lines, shown = EXAMPLES[number]
    config = connector_config(lines)
    for block in shown.strip().split("\n\n"):
        topic, record = source_record(block)
        trial = try_transformations(config, topic, [record])
        (tried,) = trial.records
        assert [line.rstrip() for line in tried.text_lines()] == block.splitlines()
        assert not trial.refusals


def test_the_page_has_an_example_of_each_kind() -> None:
    configs = [connector_config(lines) for lines, _ in EXAMPLES]
    shown = "".join(text for _, text in EXAMPLES)
    assert {": sent", ": dropped", ": held"} <= set(re.findall(r": \w+(?=\n  topic)", shown))
    assert any(tolerates_errors(config) for config in configs)
    assert len(configs) >= 6
