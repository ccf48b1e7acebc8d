"""The figures of the consumer groups that checkpoint connectors follow. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from sparkmirror.connect.connectors.checkpoint.checkpoint_latency import CheckpointLatency
from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.metrics.mirror_metrics import CHECKPOINT_LATENCY
from sparkmirror.metrics.sampled_stat import merge_values
from sparkmirror.metrics.sparkmirror_metrics import GROUP_PARTITIONS
from sparkmirror.mirror.offsets.offset_translation import TranslationOutcome
from sparkmirror.model import SourceAndTarget, TopicPartition
from sparkmirror.worker.metrics.metrics_settings import MetricsDetail
from sparkmirror.worker.metrics.topic_labels import WHOLE_TOPIC, topic_labels

_TRANSLATIONS: Final = {
    TranslationOutcome.RUN_MAP.value: "exact",
    TranslationOutcome.OFFSET_SYNC.value: "offset-sync",
}
_NONE: Final = "none"


def latency_figures(
    latencies: Iterable[CheckpointLatency], detail: MetricsDetail
) -> Iterator[Figure]:
    """Yield how long checkpoints take, by group and remote topic, or partition on request."""
    by_key: defaultdict[tuple[SourceAndTarget, str, TopicPartition], list[CheckpointLatency]]
    by_key = defaultdict(list)
    for one in latencies:
        partition = one.key.partition
        if detail is MetricsDetail.TOPIC:
            partition = TopicPartition(partition.topic, WHOLE_TOPIC)
        by_key[one.key.flow, one.key.group, partition].append(one)
    for (flow, group, partition), found in by_key.items():
        labels = {
            "source": jmx_sanitize(flow.source),
            "target": jmx_sanitize(flow.target),
            "group": jmx_sanitize(group),
        } | topic_labels(partition)
        window = merge_values(one.window for one in found)
        for suffix, value in (
            ("", max(one.last_ms for one in found)),
            ("_avg", window.average),
            ("_min", window.lowest),
            ("_max", window.highest),
        ):
            yield Figure(definition=CHECKPOINT_LATENCY[suffix], labels=labels, value=value)


def group_figures(connector: str, reports: Iterable[GroupPartitionReport]) -> Iterator[Figure]:
    """Yield how many partitions of each group are translated exactly, nearly and not at all.

    `connector` is the name that REST shows. A partition without a committed offset, or
    of a topic that is not mirrored, counts nowhere.
    """
    counts = Counter(
        (one.group, _TRANSLATIONS.get(one.translated, _NONE))
        for one in reports
        if one.upstream is not None and one.remote is not None
    )
    for (group, translation), count in sorted(counts.items()):
        yield Figure(
            definition=GROUP_PARTITIONS,
            labels={
                "connector": jmx_sanitize(connector),
                "group": jmx_sanitize(group),
                "translation": translation,
            },
            value=count,
        )
