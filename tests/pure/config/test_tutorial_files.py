"""The files of the tutorials are accepted as written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sparkmirror.cli.config.worker_start_checks import worker_start_checks
from sparkmirror.config.definition.connector_config_validation import WorkerCapabilities
from sparkmirror.config.files.properties import parse_properties
from sparkmirror.config.review.file_validation import validate_file
from sparkmirror.connect.herder.config_validator import ConfigValidator
from tests.support.tutorials.tutorial import TUTORIALS

WITHOUT_ADDRESS = re.compile(r'(?<=bootstrap\.servers=)$|(?<=bootstrap\.servers": ")(?=")', re.M)
"""The tutorial for MSK has the operator fill them in."""
WORKER_FILES = [
    TUTORIALS / "000" / "kafka-connect.properties",
    TUTORIALS / "001" / "kafka-connect" / "connect-distributed.properties",
    TUTORIALS / "002" / "own" / "connect-distributed-iam-auth.properties",
]
CONNECTOR_FILES = list(TUTORIALS.rglob("*.json"))


def text_of(file: Path) -> str:
    return WITHOUT_ADDRESS.sub("kafka:9092", file.read_text("utf-8"))


def as_text(value: object) -> str:
    """What REST makes of a JSON value."""
    return value if isinstance(value, str) else json.dumps(value)


def test_all_tutorials_are_found() -> None:
    assert len(CONNECTOR_FILES) == 7


@pytest.mark.parametrize("file", WORKER_FILES, ids=lambda file: file.stem)
def test_a_worker_file_is_accepted(file: Path) -> None:
    properties = parse_properties(text_of(file).encode(), file=file.name)
    assert validate_file(properties, {}, worker_start_checks({})).errors == ()


@pytest.mark.parametrize("file", CONNECTOR_FILES, ids=lambda file: file.stem)
def test_a_connector_config_is_accepted(file: Path) -> None:
    document = json.loads(text_of(file))
    config = {key: as_text(value) for key, value in document.get("config", document).items()}
    ConfigValidator(WorkerCapabilities(), {}).require_valid(config)
    assert config["source.cluster.bootstrap.servers"]


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("003/mirror-maker.properties", []),
        ("003/strimzi-mm2.properties", ["source.ssl.truststore.location"]),
    ],
)
def test_a_dedicated_file_lacks_at_most_its_stores(name: str, faults: list[str]) -> None:
    properties = parse_properties((TUTORIALS / name).read_bytes(), file=name)
    errors = validate_file(properties, {}, worker_start_checks({})).errors
    assert [error.key for error in errors] == faults
