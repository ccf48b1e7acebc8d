"""The surroundings of `make test-newcomer`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.newcomer import PATH_LENGTH, SYSTEM_PATH, long_path, newcomers_environment


def test_the_checkout_has_a_long_path_with_a_space() -> None:
    path = str(long_path(Path("/tmp/sparkmirror-newcomer-abcdefgh")))  # noqa: S108
    assert len(path) == PATH_LENGTH
    assert " " in path


def test_the_run_has_its_own_home_and_the_network_settings_of_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HTTPS_proxy", "http://proxy:3128")
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.example/simple")
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    environment = newcomers_environment(tmp_path / "home")
    assert environment["HOME"] == str(tmp_path / "home")
    assert environment["PIP_INDEX_URL"] == "https://index.example/simple"
    assert environment["HTTPS_proxy"] == "http://proxy:3128"
    assert "SPARK_HOME" not in environment
    assert environment["PATH"] == (SYSTEM_PATH if os.geteuid() == 0 else os.environ["PATH"])
