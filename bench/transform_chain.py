"""The transforms of a flow, as keys of a source connector. Every system gets the same. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.record_headers import DROPPED_NAME, FILTERED_NAME

_PACKAGE = "org.apache.kafka.connect.transforms"
MASKED_FIELD = "ssn"
"""The field of complete JSON values that MaskField masks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformChain:
    """The transforms of a flow. Without properties it is a flow that transforms nothing."""

    properties: Mapping[str, str] = field(default_factory=dict)
    topic_suffix: str = ""
    """What RegexRouter appends to the names of remote topics."""


NO_TRANSFORMS = TransformChain()
_SUFFIX = ".routed"
TOPIC_AND_HEADERS = TransformChain(
    properties={
        "transforms": "route,tidy,real",
        "transforms.route.type": f"{_PACKAGE}.RegexRouter",
        "transforms.route.regex": "(.*)",
        "transforms.route.replacement": f"$1{_SUFFIX}",
        "transforms.tidy.type": f"{_PACKAGE}.DropHeaders",
        "transforms.tidy.headers": DROPPED_NAME,
        "transforms.real.type": f"{_PACKAGE}.Filter",
        "transforms.real.predicate": "test",
        "predicates": "test",
        "predicates.test.type": f"{_PACKAGE}.predicates.HasHeaderKey",
        "predicates.test.name": FILTERED_NAME,
    },
    topic_suffix=_SUFFIX,
)
MASK_FIELD = TransformChain(
    properties={
        "transforms": "mask",
        "transforms.mask.type": f"{_PACKAGE}.MaskField$Value",
        "transforms.mask.fields": MASKED_FIELD,
        "transforms.mask.replacement": "***",
        "sparkmirror.transform.value.format": "json",
    }
)
