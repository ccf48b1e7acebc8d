"""Java names that mean something here, long and short."""

from __future__ import annotations

import pytest

from sparkmirror.config.classes import known_class
from sparkmirror.config.tables.connectors import ALL_CONNECTOR_NAMES
from sparkmirror.config.tables.distributed import DISTRIBUTED
from sparkmirror.config.tables.source import SOURCE
from sparkmirror.config.value import Type

MIRROR = "org.apache.kafka.connect.mirror"


@pytest.mark.parametrize(
    ("said", "meant"),
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
def test_a_class_is_known_by_its_full_and_short_names(said: str, meant: str) -> None:
    assert known_class(said) == meant


@pytest.mark.parametrize("said", ["", "Nope", "mirrorsource", "OAuthBearerLoginCallbackHandler"])
def test_unknown_and_ambiguous_names_are_nobodys(said: str) -> None:
    assert known_class(said) is None


def test_every_class_that_a_table_names_is_known() -> None:
    for key in [*SOURCE, *DISTRIBUTED]:
        if key.type is Type.CLASS and key.default_text:
            assert known_class(key.default_text) == key.default_text
    assert "topic.filter.class" in ALL_CONNECTOR_NAMES
