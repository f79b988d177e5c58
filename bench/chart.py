"""Bars as an SVG file: one panel for each case, the best on top. Its colours are legible on white and on dark.

Texts never touch each other whatever the font is: names end where bars begin, and figures stand behind the bars.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from bench.report import shown
from bench.results import RATE, Result

_WIDTH: Final = 760
_NAMES: Final = 270  # how wide the column of names is
_FIGURES: Final = 110
_BAR: Final = 14
_ROW: Final = 20
_HEADING: Final = 34
_GAP: Final = 14
_INK: Final = "#768390"
_OURS: Final = "#2f81f7"
_THEIRS: Final = "#8b949e"


@dataclass(frozen=True)
class Bar:
    """`ours` is drawn to be found at once."""

    case: str
    who: str
    value: float
    unit: str
    ours: bool


def as_svg(bars: Sequence[Bar]) -> str:
    parts: list[str] = []
    top = 0
    for case in dict.fromkeys(bar.case for bar in bars):
        panel = [bar for bar in bars if bar.case == case]
        parts.append(_panel(panel, top))
        top += _HEADING + _ROW * len(panel) + _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top}" width="{_WIDTH}"'
        f' height="{top}" role="img" aria-label="Attune beside its peers"'
        ' font-family="sans-serif" font-size="12">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _panel(bars: Sequence[Bar], top: int) -> str:
    first = bars[0]
    what = "jobs a second, more" if first.unit == RATE else f"{first.unit}, less"
    heading = f"{first.case}: {what} is better"
    lines = [_text(0, top + _HEADING - 12, heading, weight="bold")]
    longest = max(bar.value for bar in bars) or 1.0
    ordered = sorted(bars, key=lambda bar: bar.value, reverse=first.unit == RATE)
    for number, bar in enumerate(ordered):
        lines.append(_row(bar, top + _HEADING + number * _ROW, longest))
    return "\n".join(lines)


def _row(bar: Bar, top: int, longest: float) -> str:
    room = _WIDTH - _NAMES - _FIGURES
    length = max(bar.value / longest * room, 1.0)
    colour = _OURS if bar.ours else _THEIRS
    base = top + _BAR - 3
    figure = shown(Result(bar.who, bar.unit, values=[bar.value]))
    weight = "bold" if bar.ours else "normal"
    return "\n".join(
        [
            _text(_NAMES - 8, base, bar.who, anchor="end", weight=weight),
            f'<rect x="{_NAMES}" y="{top}" width="{length:.1f}" height="{_BAR}" fill="{colour}"/>',
            _text(_NAMES + length + 6, base, figure, weight=weight),
        ]
    )


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" fill="{_INK}" text-anchor="{anchor}"'
        f' font-weight="{weight}">{escape(text)}</text>'
    )
