"""The settings of metrics in the file of a worker, or of a dedicated mirror."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from sparkmirror.config.definition.config_def import ConfigDef
from sparkmirror.config.tables.additions import PROCESS_ADDITIONS
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.metrics.definition import RuleSet
from sparkmirror.metrics.sampled_stat import MetricConfig

DETAIL: Final = "sparkmirror.metrics.detail"
SAMPLES: Final = "metrics.num.samples"
WINDOW_MS: Final = "metrics.sample.window.ms"
NAMES: Final = "sparkmirror.metrics.names"
MAX_SERIES: Final = "sparkmirror.metrics.max.series"
_EXPOSURE_KEYS: Final = ConfigDef(PROCESS_ADDITIONS[NAMES], PROCESS_ADDITIONS[MAX_SERIES])
_KEYS: Final = ConfigDef(PROCESS_ADDITIONS[DETAIL], DISTRIBUTED[SAMPLES], DISTRIBUTED[WINDOW_MS])


class MetricsDetail(enum.StrEnum):
    """What has a series of its own: a topic, or each of its partitions."""

    TOPIC = "topic"
    PARTITION = "partition"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """How figures are grouped, and over which window they are computed."""

    detail: MetricsDetail = MetricsDetail.TOPIC
    window: MetricConfig = MetricConfig()

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read properties with placeholders replaced. Raises ConfigError."""
        values = _KEYS.parse(properties)
        detail, samples, window_ms = values[DETAIL], values[SAMPLES], values[WINDOW_MS]
        assert isinstance(detail, str) and isinstance(samples, int) and isinstance(window_ms, int)
        return cls(
            detail=MetricsDetail(detail),
            window=MetricConfig(samples=samples, window_ms=max(window_ms, 1)),
        )

    @classmethod
    def of_flow(cls, own: Mapping[str, str], worker: Mapping[str, str]) -> Self:
        """Read the keys of a process, and those that the worker of a flow has. Raises ConfigError.

        As in MirrorMaker 2, a worker reads its keys below the alias of its cluster.
        """
        return cls.from_properties({**worker, DETAIL: own.get(DETAIL, MetricsDetail.TOPIC)})


DEFAULT_SETTINGS: Final = MetricsSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExposureSettings:
    """The names that figures have in /metrics, and how many series a metric may have."""

    rule_sets: tuple[RuleSet, ...] = (RuleSet.STRIMZI,)
    max_series: int = 10_000

    @classmethod
    def from_properties(cls, properties: Mapping[str, str]) -> Self:
        """Read the keys of a process. Raises ConfigError."""
        values = _EXPOSURE_KEYS.parse(
            {key: properties[key] for key in (NAMES, MAX_SERIES) if key in properties}
        )
        names, max_series = values[NAMES], values[MAX_SERIES]
        assert isinstance(names, Sequence) and isinstance(max_series, int)
        return cls(
            rule_sets=tuple(dict.fromkeys(RuleSet(str(name)) for name in names)),
            max_series=max_series,
        )


DEFAULT_EXPOSURE: Final = ExposureSettings()
