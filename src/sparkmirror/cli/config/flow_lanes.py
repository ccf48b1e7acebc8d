"""How far the records of a flow of a dedicated file are opened, for `sparkmirror config`."""

from __future__ import annotations

from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.key_usage import compiled_config
from sparkmirror.model import SourceAndTarget
from sparkmirror.transforms.lane_choice import LaneChoice, connector_lane

NO_LANE = "unknown: see sparkmirror config validate"


def flow_lane(config: MirrorMakerConfig, flow: SourceAndTarget) -> LaneChoice | None:
    """The lane of a flow's records; None if its transformations cannot be run.

    Placeholders are not replaced: a reason names aliases, which may be values of a provider. A
    flow whose transformations come from a provider has no lane here.
    """
    return connector_lane(compiled_config(config, flow, FlowPart.SOURCE).props)
