"""A second try for a test on real brokers or on Spark, and the report of it.

What these tests touch (elections, compilers that warm up, a computer shared with others) fails now
and then for reasons that are not the product's. So a failed test is run once more, with everything
it needs created again. Its first failure is printed in full all the same, under "second tries", and
more of them than ALLOWED fail the run even if every one passed in the end. A second try is a defect
of the test or of the product: the list says where to look. Pure tests have one try, and so has
`make soak`, which looks for what happens once in an hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

TIERS = ("brokers", "spark")
ALLOWED_RERUNS = 3
RERUN = "second try"


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of these tiers, and run it again if it fails."""
    if item.get_closest_marker("soak"):
        return None
    if not any(item.get_closest_marker(tier) for tier in TIERS):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    if failed := [report for report in reports if report.failed]:
        for report in failed:
            # No outcome that pytest knows: what counts is how the second try ends.
            vars(report)["outcome"] = RERUN
        _log_reports(item, failed)
        _teardown_all(item)
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    _log_reports(item, reports)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _teardown_all(item: pytest.Item) -> None:
    """Take down everything, shared clusters too: what is broken must not break the second try.

    Also, a fixture that has failed once would fail again without being tried.
    """
    with suppress(Exception):  # the first failure is printed already, and likely the cause
        item.session._setupstate.teardown_exact(None)


def _log_reports(item: pytest.Item, reports: Sequence[pytest.TestReport]) -> None:
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """How a first failure looks among the dots."""
    return (RERUN, "2", "SECOND TRY") if report.outcome == RERUN else None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that needed too many second tries."""
    if len(_rerun_reports(session.config)) > ALLOWED_RERUNS:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: TerminalReporter, config: pytest.Config) -> None:
    """Print every first failure, as pytest prints failures."""
    tries = _rerun_reports(config)
    if not tries:
        return
    terminalreporter.section(f"second tries: {len(tries)}, {ALLOWED_RERUNS} allowed")
    for report in tries:
        terminalreporter.section(f"first try of {report.nodeid}", sep="_")
        terminalreporter.write_line(report.longreprtext)
    for report in tries:
        terminalreporter.write_line(f"SECOND TRY {report.nodeid}")


def _rerun_reports(config: pytest.Config) -> list[pytest.TestReport]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return list(reporter.stats.get(RERUN, ())) if reporter else []
