"""The directory of the receipts is checked by writing to it."""

from __future__ import annotations

from pathlib import Path

from sparkmirror.engine.spark.receipts_directory_check import directory_error


def test_a_missing_directory_is_created_and_stays_empty(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    assert directory_error(str(directory)) == ""
    assert list(directory.iterdir()) == []


def test_the_error_of_the_operating_system_is_returned(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert directory_error(str(tmp_path / "file" / "receipts")) == "Not a directory"
    assert directory_error("/proc/receipts") != ""


def test_a_uri_is_left_to_spark() -> None:
    assert directory_error("s3a://bucket/receipts") == ""
