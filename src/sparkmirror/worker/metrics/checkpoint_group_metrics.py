"""The figures of the consumer groups that checkpoint connectors follow. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from sparkmirror.connect.connectors.checkpoint.group_report import GroupPartitionReport
from sparkmirror.metrics.definition import Figure
from sparkmirror.metrics.jmx_quoting import jmx_sanitize
from sparkmirror.metrics.sparkmirror_metrics import GROUP_PARTITIONS
from sparkmirror.mirror.offsets.offset_translation import TranslationOutcome

_TRANSLATIONS: Final = {
    TranslationOutcome.RUN_MAP.value: "exact",
    TranslationOutcome.OFFSET_SYNC.value: "offset-sync",
}
_NONE: Final = "none"


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
