"""Which parts of a record a chain reads and writes, and so which lane it may take.

A chain that touches neither key nor value nor the time needs no value to be opened: topic and
headers are enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.transforms.transformation import RecordPart
from sparkmirror.transforms.transformation_chain import TransformationChain

_TOPIC_AND_HEADERS: Final = frozenset({RecordPart.TOPIC, RecordPart.HEADERS})


@dataclass(frozen=True, slots=True)
class ChainParts:
    """The parts that all stages of a chain together touch, and whether it may drop records."""

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
    reads: set[RecordPart] = set()
    writes: set[RecordPart] = set()
    drops = False
    for stage in chain.stages:
        reads |= stage.transformation.reads
        writes |= stage.transformation.writes
        drops = drops or stage.transformation.drops
        if stage.predicate is not None:
            reads |= stage.predicate.reads
    return ChainParts(frozenset(reads), frozenset(writes), drops)
