"""Reads docs/tutorials.md, and fails a run in which a test that the page names did not pass.

It counts for runs that choose tests only by directories and files, and that leave out no more than
the tests marked `soak`: the tiers of `make test` are such runs. In any other run a test of the page
may be missing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

PAGE = Path("docs") / "tutorials.md"
NO_TEST = "no test: "
_ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
_TEST = re.compile(r"`([\w/]+\.py::test_\w+)`")


@dataclass(frozen=True, slots=True)
class TutorialLine:
    """A fact of a tutorial, and what proves it or why nothing does."""

    number: int
    fact: str
    proof: str

    @property
    def tests(self) -> tuple[str, ...]:
        """The tests that prove it, as node ids without parameters."""
        return () if self.proof.startswith(NO_TEST) else tuple(_TEST.findall(self.proof))


def tutorial_lines(page: str) -> list[TutorialLine]:
    """Return the rows of the page in their order."""
    return [TutorialLine(int(number), fact, proof) for number, fact, proof in _ROW.findall(page)]


def named_tests(page: str) -> list[str]:
    """Return every test that the page names, once and sorted."""
    return sorted(set(_TEST.findall(page)))


def pytest_configure(config: pytest.Config) -> None:
    """Watch the run. Only the controller of the workers does."""
    page = config.rootpath / PAGE
    if not hasattr(config, "workerinput") and page.is_file() and _runs_whole_files(config):
        expected = [test for test in named_tests(page.read_text("utf-8")) if _is_run(config, test)]
        config.pluginmanager.register(NamedTests(expected))


class NamedTests:
    """Which tests of the page a run must pass and has passed."""

    def __init__(self, expected: list[str]) -> None:
        self._expected = expected
        self._passed: set[str] = set()
        self._missing: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember a passed test. One set of parameters is enough."""
        if report.when == "call" and report.passed:
            self._passed.add(report.nodeid.partition("[")[0])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that passed without a test of the page."""
        if session.exitstatus == pytest.ExitCode.OK:
            self._missing = [test for test in self._expected if test not in self._passed]
            if self._missing:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print the tests that did not pass."""
        if self._missing:
            terminalreporter.section(f"tests of {PAGE} that did not pass")
            for test in self._missing:
                terminalreporter.write_line(test)


def _runs_whole_files(config: pytest.Config) -> bool:
    chosen = any("::" in argument for argument in config.args)
    narrowed = any(
        config.getoption(name, None)
        for name in ("keyword", "deselect", "collectonly", "lf", "stepwise")
    )
    return not chosen and not narrowed and config.getoption("markexpr") in ("", "not soak")


def _is_run(config: pytest.Config, test: str) -> bool:
    file = config.rootpath / test.partition("::")[0]
    ignored = [config.rootpath / path for path in config.getoption("ignore") or ()]
    chosen = [config.invocation_params.dir / argument for argument in config.args]
    return any(map(file.is_relative_to, chosen)) and not any(map(file.is_relative_to, ignored))
