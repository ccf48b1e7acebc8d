"""Which parts of a record a chain reads and writes, and so which lane it may take.

A chain that touches neither key nor value nor the time needs no value to be opened: topic and
headers are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.transforms.drop_headers import DropHeaders
from sparkmirror.transforms.predicates.has_header_key import HasHeaderKey
from sparkmirror.transforms.transformation import NO_PARTS, RecordPart
from sparkmirror.transforms.transformation_chain import TransformationChain, TransformationStage

_TOPIC_AND_HEADERS: Final = frozenset({RecordPart.TOPIC, RecordPart.HEADERS})


@dataclass(frozen=True, slots=True)
class ChainParts:
    """The parts that a stage or all stages of a chain touch, and whether records may be dropped."""

    reads: frozenset[RecordPart]
    writes: frozenset[RecordPart]
    drops: bool

    @property
    def needs_topic_and_headers_only(self) -> bool:
        """Whether keys, values, times and partitions may stay closed."""
        return (self.reads | self.writes) <= _TOPIC_AND_HEADERS

    def ignores(self, part: RecordPart) -> bool:
        """Whether no stage reads or writes the part."""
        return part not in self.reads and part not in self.writes

    @property
    def routes(self) -> bool:
        """Whether records may get another topic."""
        return RecordPart.TOPIC in self.writes


def chain_parts(chain: TransformationChain) -> ChainParts:
    """The parts that a chain touches."""
    parts = [stage_parts(stage) for stage in chain.stages]
    return ChainParts(
        reads=NO_PARTS.union(*(each.reads for each in parts)),
        writes=NO_PARTS.union(*(each.writes for each in parts)),
        drops=any(each.drops for each in parts),
    )


def adds_headers(chain: TransformationChain) -> bool:
    """Whether a stage may do more to headers than take them away by their names."""
    return any(
        RecordPart.HEADERS in stage.transformation.writes
        and not isinstance(stage.transformation, DropHeaders)
        for stage in chain.stages
    )


def header_names(chain: TransformationChain) -> frozenset[str]:
    """The names of headers that the stages of a chain ask for.

    What a chain without keys and values does with a record depends on its topic and on which of
    these headers it has.
    """
    names: set[str] = set()
    for stage in chain.stages:
        if isinstance(stage.transformation, DropHeaders):
            names |= stage.transformation.names
        if isinstance(stage.predicate, HasHeaderKey):
            names.add(stage.predicate.name)
    return frozenset(names)


def stage_parts(stage: TransformationStage) -> ChainParts:
    """The parts that one stage touches, its predicate included."""
    transformation = stage.transformation
    condition_reads = stage.predicate.reads if stage.predicate is not None else NO_PARTS
    return ChainParts(
        reads=transformation.reads | condition_reads,
        writes=transformation.writes,
        drops=transformation.drops,
    )
