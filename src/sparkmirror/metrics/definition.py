"""What a metric is called in Prometheus, its type and its labels."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final

PARTITION: Final = "partition"
"""The label that figures have only if the operator asks for figures of each partition."""


class MetricType(enum.StrEnum):
    """The type of a metric. The rules for Kafka's MBeans know no others."""

    GAUGE = "gauge"
    COUNTER = "counter"
    UNTYPED = "unknown"
    """As OpenMetrics calls it. Prometheus' own format says `untyped`."""


class RuleSet(enum.StrEnum):
    """Rules that make names and labels for Prometheus of Kafka's MBeans."""

    STRIMZI = "strimzi"
    """Those that Strimzi's examples give the JMX exporter."""
    JMX = "jmx"
    """Those that the JMX exporter has itself, if its config has none."""
    AWS = "aws"
    """Those of AWS's workshop for MSK, which Redpanda uses too."""


WITH_TEXTS: Final = frozenset({RuleSet.STRIMZI, RuleSet.AWS})
"""Rule sets that make a label of a text. The JMX exporter leaves texts out by itself."""


class Merge(enum.Enum):
    """What becomes of several figures with the same labels: two connectors may copy one topic."""

    SUM = "sum"
    LOWEST = "lowest"
    HIGHEST = "highest"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """One metric. The name of a counter ends in `_total`."""

    name: str
    doc: str
    labels: tuple[str, ...] = ()
    """The labels of every figure; a figure of one partition has `partition` besides."""
    type: MetricType = MetricType.GAUGE
    has_partitions: bool = False
    """Whether there may be figures of each partition."""
    merge: Merge = Merge.SUM
    rule_sets: frozenset[RuleSet] = frozenset(RuleSet)
    """The rule sets that have such a metric."""

    def __post_init__(self) -> None:
        is_counter = self.type is MetricType.COUNTER
        assert self.name.endswith("_total") is is_counter, "a counter, and no other, ends in _total"

    @property
    def all_labels(self) -> frozenset[str]:
        """Every label that a figure may have."""
        return frozenset((*self.labels, *((PARTITION,) if self.has_partitions else ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One value of a metric."""

    definition: MetricDefinition
    value: float
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = self.labels.keys() - ({PARTITION} if self.definition.has_partitions else set())
        assert given == set(self.definition.labels), f"labels of {self.definition.name}"
