"""The JSON output of `sparkmirror config`. Members are stable; new ones may be added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sparkmirror.cli.config.flow_lanes import flow_lane
from sparkmirror.config.files.mirror_maker_config import MirrorMakerConfig
from sparkmirror.config.files.provenance import ConfigOrigin
from sparkmirror.config.files.worker_and_connector_keys import FlowPart
from sparkmirror.config.review.explain import SettingExplanation
from sparkmirror.config.review.findings import ValidationReport
from sparkmirror.config.review.key_usage import compiled_config, is_part_enabled
from sparkmirror.model import SourceAndTarget


def flows(config: MirrorMakerConfig, running: Sequence[SourceAndTarget]) -> list[dict[str, Any]]:
    """One object for each flow."""
    return [
        {
            "source": flow.source,
            "target": flow.target,
            "connectors": {
                str(part): is_part_enabled(config, compiled_config(config, flow, part), part)
                for part in FlowPart
                if part.connector
            },
            "records": _lane_members(config, flow),
        }
        for flow in running
    ]


def _lane_members(config: MirrorMakerConfig, flow: SourceAndTarget) -> dict[str, str] | None:
    """The lane of the records; None if no records are copied or the lane is not known."""
    source = compiled_config(config, flow, FlowPart.SOURCE)
    choice = flow_lane(config, flow)
    if choice is None or not is_part_enabled(config, source, FlowPart.SOURCE):
        return None
    return {"lane": str(choice.lane), "reason": choice.reason}


def explanations(settings: Iterable[SettingExplanation]) -> list[dict[str, Any]]:
    """One object for each setting; values are redacted."""
    return [
        {
            "flow": str(one.flow),
            "part": str(one.part),
            "key": one.key,
            "value": one.value,
            **_origin_members(one.origin),
            "read": one.is_read,
            "no_effect": one.no_effect or None,
            "overrode": [
                {"value": lost.value, **_origin_members(lost.origin)} for lost in one.overridden
            ],
        }
        for one in settings
    ]


def validation_report(report: ValidationReport) -> dict[str, Any]:
    """Faults and notices."""
    return {
        "faults": [
            {
                "line": error.line,
                "key": error.key,
                "message": error.message,
                "places": list(error.locations),
            }
            for error in report.errors
        ],
        "notices": [
            {
                "line": notice.line,
                "key": notice.key,
                "kind": str(notice.kind),
                "message": notice.message,
            }
            for notice in report.notices
        ],
    }


def _origin_members(origin: ConfigOrigin) -> dict[str, Any]:
    return {"rule": str(origin.rule), "file_key": origin.key or None, "line": origin.line}
