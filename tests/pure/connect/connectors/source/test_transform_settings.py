"""The keys about transformations that tasks get, and the configs that fail the connector."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkmirror.connect.connectors.source.transform_settings import (
    default_zone_name,
    routes_records,
    transform_settings,
)
from sparkmirror.errors import ConfigError, TransformError
from tests.support.copy.transform_chains import DROP_MARKED, MASK_PRICE, ROUTE_MARKED

_CLASSES = "org.apache.kafka.connect.transforms"


def test_tasks_get_the_keys_of_transformations_and_no_others() -> None:
    config = {**DROP_MARKED, **MASK_PRICE, "transforms": "drop,mask", "errors.tolerance": "all"}
    errors = {
        "errors.log.enable": "true",
        "errors.log.include.messages": "true",
        "sparkmirror.errors.deadletterqueue.topic.name": "failed",
        "sparkmirror.errors.deadletterqueue.context.headers.enable": "true",
    }
    secret = {"source.cluster.sasl.jaas.config": "x", "topics": ".*", "errors.retry.timeout": "1"}
    assert transform_settings(config | errors | secret) == config | errors


def test_without_transforms_tasks_get_nothing() -> None:
    assert transform_settings({"transforms": " ", "errors.tolerance": "all"}) == {}


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"transforms.mask.type": "Missing"}, "Class Missing could not be found"),
        ({"transforms.mask.fields": ""}, "'fields' must not be empty"),
        ({"sparkmirror.transform.value.format": "avro"}, "must be one of: bytes, json"),
    ],
)
def test_a_faulty_chain_fails_the_connector(changed: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        transform_settings({**MASK_PRICE, **changed})


def test_a_chain_that_only_names_the_topic_is_no_work_of_tasks() -> None:
    route = {
        "transforms.route.type": f"{_CLASSES}.RegexRouter",
        "transforms.route.regex": "a",
        "transforms.route.replacement": "b",
    }
    assert transform_settings({"transforms": "route", **route}) == {}
    both = {**MASK_PRICE, "transforms": "route,mask", **route}
    assert transform_settings(both) == both


@pytest.mark.parametrize(
    ("config", "routes"), [({}, False), (MASK_PRICE, False), (ROUTE_MARKED, True)]
)
def test_a_route_by_more_than_the_name_is_work_of_tasks(
    config: dict[str, str], routes: bool
) -> None:
    assert transform_settings(config) == config
    assert routes_records(config) is routes


def test_what_java_finds_when_a_task_starts_fails_the_connector_too() -> None:
    cast = {
        "transforms": "c",
        "transforms.c.type": f"{_CLASSES}.TimestampConverter$Value",
        "transforms.c.target.type": "string",
    }
    with pytest.raises(TransformError, match="requires format option"):
        transform_settings(cast)


@pytest.mark.parametrize(
    ("variable", "link", "zone"),
    [
        ("Europe/Berlin", "/usr/share/zoneinfo/Asia/Tokyo", "Europe/Berlin"),
        (":Asia/Tokyo", "", "Asia/Tokyo"),
        ("", "/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("", "/usr/share/zoneinfo/Etc/UTC", "UTC"),
        ("", "/somewhere", "UTC"),
        ("CET-1CEST", "", "UTC"),
    ],
)
def test_the_zone_is_that_of_the_worker(
    variable: str, link: str, zone: str, tmp_path: Path
) -> None:
    local_time = tmp_path / "localtime"
    local_time.symlink_to(link or "/somewhere")
    assert default_zone_name({"TZ": variable}, local_time) == zone


QUERY = {"sparkmirror.transform.sql": "SELECT * FROM records"}


def test_tasks_get_the_query_and_the_tolerance() -> None:
    config = {**QUERY, "errors.tolerance": "all", "topics": ".*", "transforms": ""}
    assert transform_settings(config) == {**QUERY, "errors.tolerance": "all"}


def test_tasks_get_the_route_beside_a_query_for_the_topics_that_it_computes() -> None:
    route = {
        "transforms": "r",
        "transforms.r.type": f"{_CLASSES}.RegexRouter",
        "transforms.r.regex": "a",
        "transforms.r.replacement": "b",
    }
    assert transform_settings({**QUERY, **route}) == {**QUERY, **route}


def test_a_query_beside_other_transformations_fails_the_connector() -> None:
    with pytest.raises(ConfigError, match="cannot be combined with transforms"):
        transform_settings({**QUERY, **MASK_PRICE})
