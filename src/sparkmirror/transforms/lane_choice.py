"""How far the records of a connector are opened for its transformations, and why.

unchanged   no transformation: batches are copied as they are
renamed     routes by the name of the topic: the remote topic has another name, as by a policy
headers     topic and headers are enough: keys and values stay closed
records     a stage needs keys, values, times or partitions, or sends records of one topic to
            different topics: every record is opened
rows        a query of Spark: every record is opened, and what the query reads goes through Spark
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sparkmirror.config.definition.value_types import Props
from sparkmirror.errors import ConfigError, TransformError
from sparkmirror.transforms.configuration.transformation_stages import transformation_chain
from sparkmirror.transforms.data.java_environment import JavaEnvironment
from sparkmirror.transforms.record_parts import stage_parts
from sparkmirror.transforms.spark_query import spark_query
from sparkmirror.transforms.static_route import record_routers
from sparkmirror.transforms.transformation import RecordPart
from sparkmirror.transforms.transformation_chain import TransformationChain, TransformationStage

_ANY_TIME: Final = JavaEnvironment(now_ms=0)
"""What a stage reads and writes does not depend on the clock."""
_PART_NAMES: Final = {
    RecordPart.KEY: "keys",
    RecordPart.VALUE: "values",
    RecordPart.TIMESTAMP: "times",
    RecordPart.PARTITION: "partitions",
}
"""The parts for which a record must be opened."""


class TransformLane(StrEnum):
    """How far records are opened."""

    UNCHANGED = "unchanged"
    RENAMED = "renamed"
    HEADERS = "headers"
    RECORDS = "records"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class LaneChoice:
    """The lane of a connector's records, and why, for operators."""

    lane: TransformLane
    reason: str

    def __str__(self) -> str:
        return f"{self.lane}: {self.reason}"


def connector_lane(props: Props) -> LaneChoice | None:
    """The lane of a connector's config; None if its transformations cannot be run."""
    try:
        chain = transformation_chain(props, _ANY_TIME)
    except (ConfigError, TransformError):
        return None
    query = spark_query(props)
    if query is not None:
        return LaneChoice(TransformLane.ROWS, f"Spark evaluates {query.key}")
    return lane_choice(chain)


def lane_choice(chain: TransformationChain) -> LaneChoice:
    """The lane of a chain."""
    if not chain.stages:
        return LaneChoice(TransformLane.UNCHANGED, "no transformation")
    if routers := record_routers(chain):
        names = " and ".join(stage.alias for stage in routers)
        verb = "sends" if len(routers) == 1 else "send"
        return LaneChoice(
            TransformLane.RECORDS,
            f"{names} {verb} records of one topic to different topics, in transactions",
        )
    opening = {stage.alias: _opened_parts(stage) for stage in chain.stages if _opened_parts(stage)}
    if opening:
        reasons = [f"{alias} needs {' and '.join(parts)}" for alias, parts in opening.items()]
        return LaneChoice(TransformLane.RECORDS, ", ".join(reasons))
    names = ", ".join(stage.alias for stage in chain.stages)
    if all(stage.transformation.writes == {RecordPart.TOPIC} for stage in chain.stages):
        return LaneChoice(TransformLane.RENAMED, f"only the name of the topic counts for {names}")
    return LaneChoice(TransformLane.HEADERS, f"topic and headers are enough for {names}")


def _opened_parts(stage: TransformationStage) -> list[str]:
    parts = stage_parts(stage)
    touched = parts.reads | parts.writes
    return [name for part, name in _PART_NAMES.items() if part in touched]
