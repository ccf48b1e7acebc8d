"""The same figures with the names and labels of other rule sets. Pure.

A definition has the name and the labels of Strimzi's rules. Metrics that Kafka does not have
(`sparkmirror_*`, `process_*`) are the same in all rule sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from sparkmirror.metrics.definition import (
    PARTITION,
    Figure,
    MetricDefinition,
    MetricType,
    RuleSet,
)
from sparkmirror.metrics.names.mbeans import (
    MIRROR_CHECKPOINT,
    MIRROR_SOURCE,
    MBeanType,
    find_bean,
    jmx_name,
)

_CLIENT_ID: Final = "clientid"
_AWS_LABELS: Final[Mapping[str, Mapping[str, str]]] = {
    MIRROR_SOURCE.type: {"source": "", "target": "destination"},
    MIRROR_CHECKPOINT.type: {"group": "", "topic": "", PARTITION: ""},
}
"""Labels that AWS's rules rename, by type of the MBean. An empty name stands for no label."""


@dataclass(frozen=True, slots=True)
class ExposedMetric:
    """A metric as a rule set has it, and from which label of the figure each label comes."""

    definition: MetricDefinition
    labels: tuple[tuple[str, str], ...]
    """Pairs: the label, and that of the figure."""

    def figure(self, given: Figure) -> Figure:
        """Return the figure with this name and these labels; the same one if it has them."""
        if self.definition is given.definition:
            return given
        labels = {label: given.labels[own] for label, own in self.labels if own in given.labels}
        return replace(given, definition=self.definition, labels=labels)


def expose(figures: Iterable[Figure], rule_sets: Sequence[RuleSet]) -> Iterator[Figure]:
    """Yield each figure once for every name that the rule sets give it."""
    wanted = tuple(rule_sets)
    known: dict[int, tuple[ExposedMetric, ...]] = {}
    for figure in figures:
        metrics = known.get(id(figure.definition))
        if metrics is None:
            metrics = known[id(figure.definition)] = exposed_metrics(figure.definition, wanted)
        for metric in metrics:
            yield metric.figure(figure)


@cache
def exposed_metrics(
    definition: MetricDefinition, rule_sets: tuple[RuleSet, ...]
) -> tuple[ExposedMetric, ...]:
    """Return how a metric is exposed; empty if none of the rule sets has it.

    Rule sets with the same name for it share one series, which has the labels of both.
    """
    by_name: dict[str, ExposedMetric] = {}
    for rule_set in dict.fromkeys(rule_sets):
        if rule_set in definition.rule_sets:
            found = _exposed(definition, rule_set)
            name = found.definition.name
            by_name[name] = _united(by_name.get(name, found), found)
    return tuple(by_name.values())


def _exposed(definition: MetricDefinition, rule_set: RuleSet) -> ExposedMetric:
    bean = find_bean(definition.name)
    if bean is None or definition.rule_sets == {rule_set}:
        return _renamed(definition, definition.name, {})
    if rule_set is RuleSet.JMX:
        attribute = definition.name.removeprefix(f"{bean.strimzi}_")
        untyped = replace(definition, name=jmx_name(bean, attribute), type=MetricType.UNTYPED)
        return _renamed(untyped, untyped.name, {_CLIENT_ID: "client_id"})
    if rule_set is RuleSet.AWS:
        return _renamed(definition, _aws_name(definition.name, bean), _aws_labels(bean))
    return _renamed(definition, definition.name, {})


def _aws_name(name: str, bean: MBeanType) -> str:
    return (bean.aws or bean.strimzi) + name.removeprefix(bean.strimzi)


def _aws_labels(bean: MBeanType) -> Mapping[str, str]:
    return {_CLIENT_ID: "clientId", **_AWS_LABELS.get(bean.type, {})}


def _renamed(
    definition: MetricDefinition, name: str, new_labels: Mapping[str, str]
) -> ExposedMetric:
    """Return the metric with another name and other labels."""
    pairs = [(new_labels.get(own, own), own) for own in (*definition.labels, PARTITION)]
    kept = tuple((label, own) for label, own in pairs if label)
    renamed = replace(
        definition,
        name=name,
        labels=tuple(label for label, own in kept if own != PARTITION),
        has_partitions=definition.has_partitions and (PARTITION, PARTITION) in kept,
    )
    return ExposedMetric(definition if renamed == definition else renamed, kept)


def _united(one: ExposedMetric, other: ExposedMetric) -> ExposedMetric:
    """Return the metric with the labels of both."""
    labels = tuple(dict.fromkeys((*one.definition.labels, *other.definition.labels)))
    pairs = tuple(dict.fromkeys((*one.labels, *other.labels)))
    united = replace(one.definition, labels=labels)
    return ExposedMetric(one.definition if united == one.definition else united, pairs)
