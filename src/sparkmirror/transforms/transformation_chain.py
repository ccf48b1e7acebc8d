"""Connect's TransformationChain: stages in the order of `transforms`, each with its predicate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkmirror.errors import TransformError
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.transformation import Predicate, Transformation


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformationStage:
    """A transformation, and the records that it is applied to."""

    alias: str
    transformation: Transformation
    predicate: Predicate | None = None
    negate: bool = False

    def applies_to(self, record: ConnectRecord) -> bool:
        """Whether the transformation is applied to the record."""
        return self.predicate is None or self.predicate.test(record) is not self.negate


class TransformationChain:
    """The stages of a connector."""

    __slots__ = ("stages",)

    def __init__(self, stages: Iterable[TransformationStage]) -> None:
        self.stages = tuple(stages)

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        """The record after all stages; None if one of them drops it. Raises TransformError."""
        current: ConnectRecord | None = record
        for stage in self.stages:
            if current is None:
                return None
            try:
                if stage.applies_to(current):
                    current = stage.transformation.apply(current)
            except TransformError as error:
                error.alias = stage.alias
                raise
        return current
