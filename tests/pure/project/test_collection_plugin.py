"""The garbage collector is off while pytest collects, and on while tests run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.nested_pytest import run_nested_pytest

SOURCE = """
import gc
WHILE_COLLECTING = gc.isenabled()
def test_it():
    assert not WHILE_COLLECTING
    assert gc.isenabled()
    assert gc.get_freeze_count() > 1000
"""


@pytest.mark.parametrize(
    ("plugin", "passes"), [("tests.collection_plugin", True), ("tests.file_order", False)]
)
def test_nothing_is_garbage_while_tests_are_collected(
    plugin: str, passes: bool, tmp_path: Path
) -> None:
    done = run_nested_pytest(tmp_path, SOURCE, "", "-p", plugin)
    assert (done.returncode == 0) == passes, done.stdout
