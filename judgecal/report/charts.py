"""Charts as pictures within a page: drawn by vl-convert, coloured by the page's own style sheet, without a script."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from judgecal.errors import visible

# Colours that stand for the page's: what is drawn in them takes the theme of the reader.
INK, SOFT, LINE, ACCENT, WARM = "#101112", "#606162", "#d0d1d2", "#0072b3", "#d55e00"
_VARIABLES = {INK: "--ink", SOFT: "--soft", LINE: "--line", ACCENT: "--accent", WARM: "--warm"}

_FONT = "sans-serif"
_CONFIG: Mapping[str, Any] = {
    "aria": False,  # the page names each picture once, and its numbers stand in a table
    "font": _FONT,
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "domainColor": LINE,
        "gridColor": LINE,
        "gridOpacity": 0.6,
        "tickColor": LINE,
        "labelColor": SOFT,
        "titleColor": SOFT,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "text": {"color": INK, "fontSize": 12},
}
_PADDING = {"left": 10, "right": 6, "top": 5, "bottom": 5}  # a reader's letters may be wider than those drawn with
_COLOUR = re.compile("|".join(_VARIABLES), re.IGNORECASE)
_SIZE = re.compile(r'width="([\d.]+)" height="([\d.]+)"')  # the first is the drawing's own


def rows_of(rows: Sequence[Mapping[str, object]]) -> Any:
    """Rows within the chart itself."""
    import altair as alt

    return alt.InlineData(values=[dict(row) for row in rows])


def shortened(name: str, width: int) -> str:
    """A name that would run out of its place loses its middle: beginnings and ends tell judges apart."""
    half = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - half]}…{name[-half:]}"


def _visible(value: Any) -> Any:
    """The renderer ends the whole process at a character that XML may not hold."""
    if isinstance(value, dict):
        return {visible(key): _visible(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_visible(inner) for inner in value]
    return visible(value) if isinstance(value, str) else value


def drawn(chart: Any) -> str:
    """A chart as SVG that scales down with its place and follows light and dark; nothing to run or to load."""
    import vl_convert

    spec = _visible(chart.to_dict())
    spec["config"] = {**spec.get("config", {}), **_CONFIG}
    spec.setdefault("padding", _PADDING)
    svg = str(vl_convert.vegalite_to_svg(spec))
    svg = _SIZE.sub(r'style="max-width:\1px" data-height="\2"', svg, count=1)
    return _COLOUR.sub(lambda found: f"var({_VARIABLES[found[0].lower()]})", svg)
