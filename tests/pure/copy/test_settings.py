"""Errors of a cluster name the side of the flow that the cluster is."""

from __future__ import annotations

import json

import pytest

from sparkmirror.config.tables.transform_additions import QUERY_KEYS
from sparkmirror.copy.settings import CopySettings, cluster_side, with_side
from sparkmirror.copy.task.transform.converter_factory import ConverterFactory
from sparkmirror.errors import ClusterUnavailable, ConfigError, DriverLost, MirrorError
from tests.support.copy.transform_chains import DROP_MARKED

SETTINGS = CopySettings(source_alias="primary", target_alias="backup")


@pytest.mark.parametrize(
    ("error", "side", "text"),
    [
        (ClusterUnavailable("primary", "down"), "source", "source: primary: down"),
        (ClusterUnavailable("backup", "down"), "target", "target: backup: down"),
        (ClusterUnavailable("offsets", "down"), "", "offsets: down"),
        (DriverLost("dead"), "", "dead"),
    ],
)
def test_the_side_of_a_cluster_is_named(error: MirrorError, side: str, text: str) -> None:
    assert cluster_side(error, SETTINGS) == side
    assert with_side(error, SETTINGS) == text


def test_transformations_reach_a_task_and_no_repr() -> None:
    settings = CopySettings(transforms=DROP_MARKED, transforms_zone="Asia/Tokyo")
    received = CopySettings.from_json(json.loads(json.dumps(settings.to_json())))
    assert received == settings
    assert received.chain == settings.chain
    assert "HasHeaderKey" not in repr(settings)


def test_the_fingerprint_of_a_chain_depends_on_what_it_does_to_records() -> None:
    chain = CopySettings(transforms=DROP_MARKED).chain
    errors = {
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "sparkmirror.errors.deadletterqueue.topic.name": "failed",
    }
    assert CopySettings(transforms={**DROP_MARKED, **errors}).chain == chain
    assert CopySettings(transforms=dict(sorted(DROP_MARKED.items(), reverse=True))).chain == chain
    others = (
        CopySettings(transforms={**DROP_MARKED, "transforms.drop.negate": "true"}),
        CopySettings(transforms=DROP_MARKED, transforms_zone="Asia/Tokyo"),
        CopySettings(),
    )
    assert len({chain, *(other.chain for other in others)}) == 4
    assert not CopySettings().chain


@pytest.mark.parametrize("key", sorted(QUERY_KEYS))
def test_routes_beside_a_query_are_not_part_of_its_fingerprint(key: str) -> None:
    route = {"transforms": "route", "transforms.route.regex": "(.*)", "predicates": "p"}
    query = {key: "rules:mask"}
    assert CopySettings(transforms={**query, **route}).chain == CopySettings(transforms=query).chain
    assert (
        CopySettings(transforms={key: "rules:hash"}).chain != CopySettings(transforms=query).chain
    )


def test_a_host_without_the_zone_of_the_worker_is_named() -> None:
    settings = CopySettings(transforms=DROP_MARKED, transforms_zone="No/Where")
    with pytest.raises(ConfigError, match="does not know the time zone No/Where"):
        ConverterFactory.for_settings(settings)
