"""docs/tutorials.md: every line is there, and every test that it names exists and is run."""

from __future__ import annotations

import ast
import hashlib
import re
from functools import cache
from pathlib import Path

import pytest

from tests.support.nested_pytest import run_nested_pytest
from tests.support.tutorials.tutorial import TUTORIALS
from tests.tutorial_table_plugin import NO_TEST, PAGE, TutorialLine, named_tests, tutorial_lines

ROOT = Path(__file__).parents[3]
LINES = tutorial_lines((ROOT / PAGE).read_text("utf-8"))
LINE_COUNT = 308
OWN = "own"
LEFT_OUT = {"soak", "skip", "skipif", "xfail"}
"""Marks with which `make test` may not run a test."""
CHECKSUMS = TUTORIALS / "SHA256SUMS"
NAMED_ROW = "| 1 | a fact | `test_it.py::test_named` |\n"


@cache
def marks_of_tests(file: Path) -> dict[str, set[str]]:
    """The marks of each test of a file, with those of the file."""
    module = ast.parse(file.read_text("utf-8"))
    of_file = {
        mark
        for node in module.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
        for mark in re.findall(r"pytest\.mark\.(\w+)", ast.unparse(node.value))
    }
    return {
        node.name: of_file
        | {mark for decorator in node.decorator_list if (mark := _mark_of(decorator))}
        for node in module.body
        if isinstance(node, ast.FunctionDef)
    }


def _mark_of(decorator: ast.expr) -> str:
    """The name of the mark that decorates a test; marks of parameters do not count."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).removeprefix("pytest.mark.")


@cache
def make_test_paths() -> list[tuple[list[str], list[str]]]:
    """What the recipes of `make test` give to pytest, and what they ignore."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipes = dict(re.findall(r"^([a-z-]+):[^\n]*\n((?:\t[^\n]*\n)+)", makefile, re.MULTILINE))
    found = re.search(r"^test: (.*?) ##", makefile, re.MULTILINE)
    assert found
    targets = found[1].split()
    for target in list(targets):
        called = re.findall(
            r"\$\(MAKE\) --no-print-directory (?:-j 2 )?([a-z -]+)", recipes.get(target, "")
        )
        targets += " ".join(called).split()
    lines = [
        line
        for target in targets
        for line in recipes.get(target, "").splitlines()
        if "/pytest " in line
    ]
    return [
        (
            re.findall(r"(?<!--ignore) (tests/[\w/]+)", line),
            re.findall(r"--ignore (tests/[\w/]+)", line),
        )
        for line in lines
    ]


def test_every_line_is_there_once_and_in_order() -> None:
    assert [line.number for line in LINES] == list(range(1, LINE_COUNT + 1))


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line.number))
def test_line_has_a_test_or_a_reason(line: TutorialLine) -> None:
    assert line.tests or line.proof.startswith(NO_TEST)
    assert not line.proof.endswith(".")


@pytest.mark.parametrize("test", named_tests((ROOT / PAGE).read_text("utf-8")))
def test_named_test_exists_and_make_test_runs_it(test: str) -> None:
    file, _, name = test.partition("::")
    marks = marks_of_tests(ROOT / file)
    assert name in marks
    assert not marks[name] & LEFT_OUT
    assert any(
        any(file.startswith(f"{path}/") for path in paths)
        and not any(file.startswith(f"{path}/") for path in ignored)
        for paths, ignored in make_test_paths()
    )


def test_each_tutorial_has_its_acceptance_test() -> None:
    commands = sorted(TUTORIALS.glob("*/commands.txt"))
    assert len(commands) == 5
    tests = {
        test for test in named_tests((ROOT / PAGE).read_text("utf-8")) if "_tutorial.py" in test
    }
    assert len(tests) == 5


def test_printed_files_are_as_the_tutorials_print_them() -> None:
    lines = [line.split("  ", 1) for line in CHECKSUMS.read_text("ascii").splitlines()]
    listed = {name: checksum for checksum, name in lines}
    printed = {
        str(file.relative_to(TUTORIALS)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in TUTORIALS.glob("0*/**/*")
        if file.is_file() and OWN not in file.relative_to(TUTORIALS).parts
    }
    assert printed == listed


@pytest.mark.parametrize(
    ("source", "options", "is_missed"),
    [
        ("def test_named(): pass", (), False),
        ("def test_other(): pass", (), True),
        ("import pytest\n@pytest.mark.soak\ndef test_named(): pass\ndef test_a(): pass", (), True),
        ("import pytest\n@pytest.mark.parametrize('x', 'ab')\ndef test_named(x): pass", (), False),
        ("def test_other(): pass", ("-k", "other"), False),
    ],
)
def test_run_without_a_named_test_fails(
    tmp_path: Path, source: str, options: tuple[str, ...], is_missed: bool
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / PAGE).write_text(NAMED_ROW, "ascii")
    plugin = ("-p", "tests.tutorial_table_plugin", "-m", "not soak")
    done = run_nested_pytest(tmp_path, source, "markers =\n  soak", *plugin, *options)
    assert done.returncode == int(is_missed), done.stdout
    assert ("\ntest_it.py::test_named" in done.stdout) == is_missed
