"""An error of Spark in one line."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

TRACEBACK_HEADER = "Traceback (most recent call last):"


def error_summary(error: Exception) -> str:
    """The error in one line; for failed Python code, the last line of its traceback."""
    cause = error.java_exception if isinstance(error, Py4JJavaError) else error
    return text_summary(str(cause)) or type(error).__name__


def text_summary(text: str) -> str:
    """The first line of a message; if it has a traceback, the last line of that."""
    lines = text.strip().splitlines() or [""]
    headers = [number for number, line in enumerate(lines) if TRACEBACK_HEADER in line]
    if headers:
        ends = [line for line in lines[headers[-1] + 1 :] if line.strip() and not line[0].isspace()]
        lines = ends or lines
    return lines[0].strip()
