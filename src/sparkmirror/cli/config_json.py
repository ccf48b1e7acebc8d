"""What `sparkmirror config` says to programs. Members are stable; new ones may come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sparkmirror.config.dedicated import Dedicated
from sparkmirror.config.explain import Explanation
from sparkmirror.config.findings import Review
from sparkmirror.config.landings import compiled, is_at_work
from sparkmirror.config.layers import Origin
from sparkmirror.config.parts import Part
from sparkmirror.model import SourceAndTarget


def flows(dedicated: Dedicated, running: Sequence[SourceAndTarget]) -> list[dict[str, Any]]:
    """One object for each flow."""
    return [
        {
            "source": flow.source,
            "target": flow.target,
            "connectors": {
                str(part): is_at_work(dedicated, compiled(dedicated, flow, part), part)
                for part in Part
                if part.connector
            },
        }
        for flow in running
    ]


def explanations(found: Iterable[Explanation]) -> list[dict[str, Any]]:
    """One object for each setting; values are redacted."""
    return [
        {
            "flow": str(one.flow),
            "part": str(one.part),
            "key": one.key,
            "value": one.value,
            **_origin(one.origin),
            "read": one.is_read,
            "overrode": [{"value": lost.value, **_origin(lost.origin)} for lost in one.overrode],
        }
        for one in found
    ]


def review(found: Review) -> dict[str, Any]:
    """Faults and notices."""
    return {
        "faults": [
            {
                "line": objection.line,
                "key": objection.key,
                "message": objection.message,
                "places": list(objection.places),
            }
            for objection in found.objections
        ],
        "notices": [
            {
                "line": notice.line,
                "key": notice.key,
                "kind": str(notice.kind),
                "message": notice.message,
            }
            for notice in found.notices
        ],
    }


def _origin(origin: Origin) -> dict[str, Any]:
    return {"rule": str(origin.rule), "file_key": origin.key or None, "line": origin.line}
