"""The progress of a download as text."""

from __future__ import annotations

import pytest

from sparkmirror.cli.progress_line import download_text, progress_line
from sparkmirror.lab.kafka.ivy import DownloadProgress


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (DownloadProgress(stage="checking"), "Kafka's jars: checking"),
        (
            DownloadProgress(stage="resolving", total=3, file="zstd-jni-1.5"),
            "Kafka's jars: resolving (0/3 jars, zstd-jni-1.5)",
        ),
        (
            DownloadProgress(
                stage="downloading", done=2, total=3, size_bytes=3 << 19, file="a.jar"
            ),
            "Kafka's jars: downloading (2/3 jars, 1.5 MB, a.jar)",
        ),
    ],
    ids=["checking", "resolving", "downloading"],
)
def test_download_text_has_stage_jars_size_and_file(progress: DownloadProgress, text: str) -> None:
    assert download_text(progress) == text


def test_without_a_terminal_each_download_stage_is_printed_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with progress_line() as line:
        for done in range(3):
            line.on_download(DownloadProgress(stage="downloading", done=done, total=3))
        line.show("[bold] is no markup")
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [
        "Kafka's jars: downloading (0/3 jars)",
        "[bold] is no markup",
    ]
    assert printed.out == ""
