"""The second try of the slow tiers: what it forgives, what it does not, and what it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.rerun_plugin import ALLOWED_RERUNS
from tests.support.nested_pytest import run_nested_pytest

PREAMBLE = """
import pytest
TRIES = {}
def fail_first(name, message):
    TRIES[name] = TRIES.get(name, 0) + 1
    assert TRIES[name] > 1, message
"""
FLAKY_TEST = """
@pytest.mark.%s
def test_wobbles_%d():
    fail_first(%d, "the first try said this")
"""


def _run_pytest(directory: Path, *tests: str, workers: int = 0) -> subprocess.CompletedProcess[str]:
    markers = "markers =\n  pure\n  brokers\n  spark"
    options = ("-n", str(workers), "-p", "tests.rerun_plugin")
    return run_nested_pytest(directory, PREAMBLE + "".join(tests), markers, *options)


@pytest.mark.parametrize(("tier", "workers"), [("brokers", 1), ("spark", 0)])
def test_a_test_that_passes_the_second_time_passes_and_its_failure_is_printed(
    tmp_path: Path, tier: str, workers: int
) -> None:
    result = _run_pytest(tmp_path, FLAKY_TEST % (tier, 1, 1), workers=workers)
    assert result.returncode == 0, result.stdout
    assert "the first try said this" in result.stdout
    assert "1 passed, 1 second try" in result.stdout


def test_a_test_that_fails_twice_fails(tmp_path: Path) -> None:
    broken = "@pytest.mark.brokers\ndef test_it():\n    assert False\n"
    assert _run_pytest(tmp_path, broken).returncode == 1


@pytest.mark.parametrize("scope", ["function", "module", "session"])
def test_a_fixture_is_created_again_for_the_second_try(tmp_path: Path, scope: str) -> None:
    fixture = (
        f"@pytest.fixture(scope='{scope}')\ndef made():\n    fail_first(0, 'no')\n    yield 1\n"
    )
    use = "@pytest.mark.brokers\ndef test_%d(made):\n    assert made == 1\n"
    result = _run_pytest(tmp_path, fixture, use % 1, use % 2)
    assert result.returncode == 0, result.stdout
    assert "2 passed, 1 second try" in result.stdout


def test_a_shared_fixture_is_created_again_for_the_second_try(tmp_path: Path) -> None:
    shared = "MADE = []\n@pytest.fixture(scope='session')\ndef shared():\n    MADE.append(1)\n"
    breaks = "@pytest.mark.brokers\ndef test_1(shared):\n    fail_first(0, 'no')\n"
    after = "@pytest.mark.brokers\ndef test_2(shared):\n    assert len(MADE) == 2\n"
    assert _run_pytest(tmp_path, shared, breaks, after).returncode == 0


def test_a_pure_test_has_one_try(tmp_path: Path) -> None:
    assert _run_pytest(tmp_path, FLAKY_TEST % ("pure", 1, 1)).returncode == 1


def test_too_many_second_tries_fail_the_run(tmp_path: Path) -> None:
    tests = [FLAKY_TEST % ("brokers", number, number) for number in range(ALLOWED_RERUNS + 1)]
    result = _run_pytest(tmp_path, *tests, workers=1)
    assert result.returncode == 1, result.stdout
    assert f"second tries: {ALLOWED_RERUNS + 1}, {ALLOWED_RERUNS} allowed" in result.stdout
