"""Finds two flows of a dedicated file whose transformations copy topics to each other for ever.

The name of a remote topic shows where it comes from, unless a transformation takes that away.
Java's mirror copies such topics in a circle as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.notices import Notice, NoticeKind
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.config.review.start_check_callbacks import StartCheckCallbacks
from sparkmirror.model import SourceAndTarget

_TRANSFORMS = "transforms"


def circular_flow_notices(
    config: MirrorMakerConfig,
    valid_parts: Collection[tuple[SourceAndTarget, FlowPart]],
    checks: StartCheckCallbacks,
) -> Iterator[Notice]:
    """Yield a notice for each two flows with an example of a topic that goes round in a circle."""
    flows = sorted(flow for flow, part in valid_parts if part is FlowPart.SOURCE)
    for flow in flows:
        back = SourceAndTarget(flow.target, flow.source)
        if back not in flows or back < flow:
            continue
        layers = [compiled_config(config, one, FlowPart.SOURCE) for one in (flow, back)]
        origins = [one[_TRANSFORMS].origin for one in layers if _TRANSFORMS in one]
        if not origins:
            continue
        there, again = (config.expand(one.props).values for one in layers)
        topic = checks.circular_topic(there, again)
        if topic:
            yield Notice(
                kind=NoticeKind.CIRCLE,
                message=f"{flow} and {back} copy topics such as {topic} to each other without end: "
                "the routed names do not show where a topic comes from; select different topics, "
                "or route only one way",
                key=origins[0].key,
                line=origins[0].line,
            )
