"""A relative Python path of the executors works on the driver, too."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.engine.driver.executor_python_link import link_executor_python


def test_a_relative_python_path_is_linked_to_our_environment(tmp_path: Path) -> None:
    here, prefix = tmp_path / "here", tmp_path / "prefix"
    here.mkdir()
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").touch()
    for absolute in ("python3", str(prefix / "bin" / "python")):
        link_executor_python(absolute, here, prefix)
    assert list(here.iterdir()) == []
    for _ in range(2):
        link_executor_python("./archive/bin/python", here, prefix)
        assert (here / "archive" / "bin" / "python").is_file()
