"""Routes that depend on nothing but the name of the topic: RegexRouter, and TopicNameMatches.

All records of a topic then get the same topic. Such a route names the remote topic, as a
replication policy does, and no record need be opened for it. If a stage of the chain routes by
more (`record_routers`), the topic of each record is known only when the chain has been applied to
it, and the chain has no static route.

Invariant: for every record that a chain does not drop, `static_route(chain)(topic)` is the topic
that the chain gives it, where `topic` is the name that the replication policy gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sparkmirror.transforms.predicates.topic_name_matches import TopicNameMatches
from sparkmirror.transforms.record import ConnectRecord
from sparkmirror.transforms.record_parts import stage_parts
from sparkmirror.transforms.regex_router import RegexRouter
from sparkmirror.transforms.transformation import RecordPart
from sparkmirror.transforms.transformation_chain import TransformationChain, TransformationStage

_TOPIC: Final = frozenset({RecordPart.TOPIC})


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """The stages of a chain that route, all of them by the name of the topic."""

    stages: tuple[TransformationStage, ...]

    @property
    def is_identity(self) -> bool:
        """Whether no topic gets another name."""
        return not self.stages

    @property
    def texts(self) -> tuple[str, ...]:
        """What the route consists of: equal for equal routes, under any aliases."""
        return tuple(text for stage in self.stages for text in _texts(stage))

    def __call__(self, topic: str) -> str:
        """The topic to which records of a topic go."""
        record = ConnectRecord(topic, None, None, None, None, None, None)
        for stage in self.stages:
            if stage.applies_to(record):
                routed = stage.transformation.apply(record)
                assert routed is not None, "a router drops no record"
                record = routed
        return record.topic


def static_route(chain: TransformationChain) -> StaticRoute | None:
    """The route of a chain; None if a stage routes by more than the name of the topic.

    Raises TransformError for a replacement with which every record of a matching topic would fail.
    """
    return None if record_routers(chain) else remote_topic_route(chain)


def remote_topic_route(chain: TransformationChain) -> StaticRoute:
    """The route of the stages that route by the name of the topic: it names the remote topic.

    If other stages route too, records that they do not concern go to this topic.
    Raises TransformError as `static_route`.
    """
    others = record_routers(chain)
    routers = tuple(stage for stage in chain.stages if _routes(stage) and stage not in others)
    for stage in routers:
        assert isinstance(stage.transformation, RegexRouter)
        stage.transformation.check_replacement()
    return StaticRoute(routers)


def record_routers(chain: TransformationChain) -> tuple[TransformationStage, ...]:
    """The stages that may give two records of one topic different topics."""
    return tuple(
        stage for stage in chain.stages if _routes(stage) and not stage_parts(stage).reads <= _TOPIC
    )


def without_routing(chain: TransformationChain) -> TransformationChain:
    """The stages that are left for the records; all of them if the chain has no static route.

    If a stage that does not route reads the topic, all stages are left: that stage needs the name
    that those before it have made. The records must come with the name that the replication policy
    gives, and leave the chain with the routed one. Otherwise the name does not matter.
    """
    rest = tuple(stage for stage in chain.stages if not _routes(stage))
    if record_routers(chain) or any(RecordPart.TOPIC in stage_parts(stage).reads for stage in rest):
        return chain
    return TransformationChain(rest)


def _texts(stage: TransformationStage) -> tuple[str, ...]:
    router, predicate = stage.transformation, stage.predicate
    assert isinstance(router, RegexRouter), "no other transformation routes by the name alone"
    condition = predicate.pattern if isinstance(predicate, TopicNameMatches) else ""
    return (router.regex, router.replacement, condition, str(stage.negate))


def _routes(stage: TransformationStage) -> bool:
    return RecordPart.TOPIC in stage.transformation.writes
