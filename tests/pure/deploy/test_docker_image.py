"""The Dockerfile: what its linter says, what it copies, and what its commands name."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
HADOLINT = Path(sys.executable).with_name("hadolint")
IMAGE_LOCK = ROOT / "requirements" / "image.txt"
BUILD_LOCK = ROOT / "requirements" / "image-build.txt"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with its text on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text("utf-8"), flags=re.MULTILINE)
    lines = text.replace("\\\n", " ").splitlines()
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines if line.strip()]


def last_stage() -> dict[str, str]:
    """The instructions of the published stage; of several with one name the last one."""
    found = instructions()
    begin = max(at for at, (name, _) in enumerate(found) if name == "FROM")
    return dict(found[begin:])


def locked_versions(file: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", file.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("file", [DOCKERFILE, ROOT / "deploy/compose/004/Dockerfile"])
def test_hadolint_has_no_remark(file: Path) -> None:
    ran = subprocess.run([HADOLINT, file], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_every_stage_is_debian() -> None:
    stages = [text.split()[0] for name, text in instructions() if name == "FROM"]
    assert stages == ["debian:bookworm-slim"] * 2


def test_container_runs_as_a_user_without_rights_below_an_init() -> None:
    stage = last_stage()
    assert stage["USER"] == "185"
    assert stage["WORKDIR"] == "/app/replicator"
    init, *arguments = json.loads(stage["ENTRYPOINT"])
    assert init == "/usr/bin/tini"
    installed = next(text for _, text in instructions() if "openjdk" in text)
    assert {"tini", "procps", "bash", "curl", "jq", "openssl"} <= set(installed.split())
    assert arguments[:3] == ["--", "python", "-m"]


def test_modules_that_the_image_starts_exist() -> None:
    modules = re.findall(r"sparkmirror\.cli\.container\.\w+", DOCKERFILE.read_text("utf-8"))
    assert len(set(modules)) == 2
    for module in modules:
        assert importlib.util.find_spec(module) is not None, module


def test_scripts_of_other_images_are_scripts_of_the_package() -> None:
    text = dict(instructions())["RUN"]
    loop = re.search(r"for script in ([^;]+);", text)
    assert loop
    assert set(loop[1].split()) <= set(PROJECT["scripts"])
    assert "for directory in /opt/kafka/bin /opt/bitnami/kafka/bin;" in text


def test_copied_files_are_part_of_the_build() -> None:
    allowed = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines()
        if line.startswith("!")
    ]
    copied = [
        source
        for name, text in instructions()
        if name == "COPY" and not text.startswith("--from")
        for source in text.split()[:-1]
    ]
    assert sorted(copied) == sorted(allowed)
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_label_has_the_version_of_the_package() -> None:
    labels = last_stage()["LABEL"]
    assert f'org.opencontainers.image.version="{PROJECT["version"]}"' in labels


def test_image_has_the_versions_that_are_tested() -> None:
    tested = locked_versions(ROOT / "requirements" / "dev.txt")
    locked = locked_versions(IMAGE_LOCK) | locked_versions(BUILD_LOCK)
    assert {name: version for name, version in locked.items() if tested.get(name) != version} == {}
    names = (re.split(r"[\[><=]", text)[0] for text in PROJECT["dependencies"])
    needed = {name.lower().replace("_", "-") for name in names} | {"pyspark"}
    assert needed - set(locked) == set()
