"""The linters of shell scripts and YAML files have no remark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TOOLS = Path(sys.executable).parent
SHEBANGS = (b"#!/usr/bin/env bash\n", b"#!/bin/sh\n", b"#!/bin/bash\n")
YAML_RULES = """\
extends: default
rules:
  document-start: disable
  line-length: {max: 160}
  comments-indentation: disable
  octal-values: disable
  truthy: {check-keys: false}
"""
"""yamllint's own rules; a mode such as 0440 is a number here, and prose may be wide."""


def shell_scripts() -> list[Path]:
    """The scripts of the project."""
    files = [*(ROOT / "bin").iterdir(), *(ROOT / ".ci").iterdir(), *ROOT.glob("deploy/**/*.sh")]
    return sorted(file for file in files if file.read_bytes().startswith(SHEBANGS))


def yaml_files() -> list[Path]:
    """The YAML files of deploy; those of a chart's templates are none before helm renders them."""
    files = [*ROOT.glob("deploy/**/*.yml"), *ROOT.glob("deploy/**/*.yaml")]
    return sorted(file for file in files if "templates" not in file.parts)


def lint(program: str, *arguments: str | Path) -> tuple[int, str]:
    ran = subprocess.run([TOOLS / program, *arguments], capture_output=True, text=True, check=False)
    return ran.returncode, ran.stdout + ran.stderr


def test_shellcheck_has_no_remark(tmp_path: Path) -> None:
    scripts = shell_scripts()
    assert len(scripts) >= 6
    assert lint("shellcheck", "--external-sources", *scripts) == (0, "")
    wrong = tmp_path / "wrong.sh"
    wrong.write_text("#!/bin/sh\nrm $1\n", "ascii")
    assert lint("shellcheck", wrong)[0] == 1


def test_yamllint_has_no_remark(tmp_path: Path) -> None:
    files = yaml_files()
    assert len(files) > 15
    assert lint("yamllint", "--strict", "--config-data", YAML_RULES, *files) == (0, "")
    wrong = tmp_path / "wrong.yml"
    wrong.write_text("a: 1\na: 2\n", "ascii")
    assert lint("yamllint", "--config-data", YAML_RULES, wrong)[0] == 1
