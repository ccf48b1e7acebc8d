"""The shared values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.model import SourceAndTarget, TopicPartition


@given(st.text(), st.integers(min_value=0, max_value=2**31 - 1))
def test_a_topic_partition_reads_back_what_it_wrote(topic: str, partition: int) -> None:
    assert TopicPartition.parse(str(TopicPartition(topic, partition))) == (topic, partition)


@pytest.mark.parametrize("text", ["", "topic", "topic-", "topic-x"])
def test_what_is_not_a_topic_partition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not of the form|invalid literal"):
        TopicPartition.parse(text)


def test_equals() -> None:
    """Upstream's SourceAndTargetTest.testEquals: equality by both aliases, and by nothing else."""
    flow = SourceAndTarget("source", "target")
    assert flow == SourceAndTarget("source", "target")
    assert flow != SourceAndTarget("target", "source")
    assert str(flow) == "source->target"
