"""Java class names that have a meaning here, full and simple."""

from __future__ import annotations

import pytest

from sparkmirror.config.definition.java_classes import resolve_class
from sparkmirror.config.definition.value_types import Type
from sparkmirror.config.files.flow_config_precedence import ALL_CONNECTOR_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source import SOURCE

MIRROR = "org.apache.kafka.connect.mirror"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("MirrorSource", f"{MIRROR}.MirrorSourceConnector"),
        ("MirrorSourceConnector", f"{MIRROR}.MirrorSourceConnector"),
        ("ByteArray", "org.apache.kafka.connect.converters.ByteArrayConverter"),
        ("Simple", "org.apache.kafka.connect.storage.SimpleHeaderConverter"),
        ("IdentityReplicationPolicy", f"{MIRROR}.IdentityReplicationPolicy"),
        ("Cast$Key", "org.apache.kafka.connect.transforms.Cast$Key"),
        (
            "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
            "com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy",
        ),
    ],
)
def test_a_class_is_known_by_its_full_and_short_names(written: str, meant: str) -> None:
    assert resolve_class(written) == meant


@pytest.mark.parametrize("written", ["", "Nope", "mirrorsource", "OAuthBearerLoginCallbackHandler"])
def test_unknown_and_ambiguous_names_mean_no_class(written: str) -> None:
    assert resolve_class(written) is None


def test_every_class_that_a_table_names_is_known() -> None:
    for key in [*SOURCE, *DISTRIBUTED]:
        if key.type is Type.CLASS and key.default_text:
            assert resolve_class(key.default_text) == key.default_text
    assert "topic.filter.class" in ALL_CONNECTOR_NAMES
