"""The SVG chart of docs/benchmarks.md. Pure.

One row for each metric, on a logarithmic axis: a dot for sparkmirror's median with a bar from the
lowest to the highest value, a tick for the requirement, a ring for the plain loop. Java is at 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape

from bench.speedups import Speedup

WIDTH = 860
LEFT, RIGHT = 330, 40
TOP, ROW, BOTTOM = 70, 26, 50
MIN_RATIO, MAX_RATIO = 1 / 16, 256.0
_GOOD, _BAD, _GREY, _INK = "#1a7f37", "#cf222e", "#8c959f", "#24292f"


def x_position(times: float) -> float:
    """Return the x coordinate of a ratio; a ratio beyond the axis is placed at its end."""
    ratio = min(max(times, MIN_RATIO), MAX_RATIO)
    share = math.log(ratio / MIN_RATIO) / math.log(MAX_RATIO / MIN_RATIO)
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def render_svg(lines: Sequence[Speedup], title: str) -> str:
    """Return the chart as SVG."""
    height = TOP + ROW * len(lines) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        f' width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(16, 24, title, size=15),
        _text(16, 44, "times better than Java MirrorMaker 2; further right is better"),
        *_axis(height),
    ]
    for number, line in enumerate(lines):
        parts += _row(line, TOP + ROW * number + ROW / 2)
    parts += _legend(height - 14)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axis(height: int) -> Iterator[str]:
    bottom = height - BOTTOM + 4
    times = MIN_RATIO
    while times <= MAX_RATIO:
        x, colour = x_position(times), _INK if times == 1 else "#d8dee4"
        yield _stroke((x, TOP - 6), (x, bottom), colour, 1)
        label = f"{times:g}" if times >= 1 else f"1/{1 / times:g}"
        yield _text(x, bottom + 13, label, anchor="middle", colour=_GREY)
        times *= 4


def _row(line: Speedup, y: float) -> Iterator[str]:
    colour = _GOOD if line.is_met else _BAD
    lowest, median, highest = (x_position(line.ours[at]) for at in (1, 0, 2))
    wanted = x_position(line.required)
    title = f"{line.title} ({line.baseline})"
    yield _text(LEFT - 12, y + 4, title, anchor="end")
    yield _stroke((wanted, y - 9), (wanted, y + 9), _INK, 2)
    yield _stroke((lowest, y), (highest, y), colour, 4)
    yield _dot(median, y, colour)
    if line.plain_loop is not None:
        yield _ring(x_position(line.plain_loop), y)


def _legend(y: int) -> Iterator[str]:
    yield _dot(24, y - 4, _GOOD)
    yield _text(36, y, "sparkmirror, median and extremes (red: less than wanted)")
    yield _stroke((380, y - 12), (380, y + 4), _INK, 2)
    yield _text(390, y, "wanted")
    yield _ring(460, y - 4)
    yield _text(472, y, "a loop by hand with confluent-kafka")


def _stroke(begin: tuple[float, float], end: tuple[float, float], colour: str, width: int) -> str:
    return (
        f'<line x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
        f' stroke="{colour}" stroke-width="{width}"/>'
    )


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>'


def _ring(x: float, y: float) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="none" stroke="{_GREY}" stroke-width="2"/>'
    )


def _text(
    x: float, y: float, text: str, *, size: int = 12, anchor: str = "start", colour: str = _INK
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"'
        f' fill="{colour}">{escape(text)}</text>'
    )
