"""People who wait are told in words."""

from __future__ import annotations

import pytest

from sparkmirror.cli.progress import fetch_text, ticking
from sparkmirror.lab.ivy import Progress


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(stage="checking"), "Kafka's jars: checking"),
        (
            Progress(stage="resolving", total=3, file="zstd-jni-1.5"),
            "Kafka's jars: resolving (0/3 jars, zstd-jni-1.5)",
        ),
        (
            Progress(stage="downloading", done=2, total=3, size_bytes=3 << 19, file="a.jar"),
            "Kafka's jars: downloading (2/3 jars, 1.5 MB, a.jar)",
        ),
    ],
    ids=["checking", "resolving", "downloading"],
)
def test_download_in_words(progress: Progress, text: str) -> None:
    assert fetch_text(progress) == text


def test_where_lines_stay_a_download_is_told_once_a_stage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with ticking() as ticker:
        for done in range(3):
            ticker.fetch(Progress(stage="downloading", done=done, total=3))
        ticker.say("[bold] is no markup")
    told = capsys.readouterr()
    assert told.err.splitlines() == [
        "Kafka's jars: downloading (0/3 jars)",
        "[bold] is no markup",
    ]
    assert told.out == ""
