"""The picture of the house, `docs/img/house.svg`: the rooms, and the way of data up through them.

An arrow goes up from each room that another one imports, and that it reaches by no other way, as
`tests/support/layers.py` reads the imports.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

from tests.support.layers import CORE, MODULES, WINGS, imported, room_of

_GROUND = (*CORE[: CORE.index("models")], "prompts", "signatures")
_HANDS_UP = {
    "records": "items, scales, errors, files",
    "models": "aliases, prices, embedded",
    "tables": "a table as one frame",
    "stats": "arrays in, Estimates out",
    "engine": "replies, journalled",
    "goldset": "items, ratings, splits",
    "judges": "one verdict an item",
    "experiment": "AgreementTable: arrays",
    "probes": "answers made by rules",
    "optimize": "a better prompt",
    "selection": "decisions, locks",
    "production": "judged tables, rates",
    "report": "one Document a result",
    "cli": "terminal, JSON, pages",
    "rag": "retriever, systems",
    "exchange": "exports, MLflow, Mosaic",
    "bulk": "several files, Ray",
    "desk": "the labelling page",
}
_WIDTH, _HEIGHT, _GAP_X, _GAP_Y = 190, 44, 24, 34


def house_picture() -> str:
    """The picture as SVG; the lowest rooms are at the bottom, wings have a dashed edge."""
    direct = _direct(_imports())
    level: dict[str, int] = {}
    for room in _HANDS_UP:
        level[room] = 1 + max((level[below] for below in direct[room]), default=-1)
    top = max(level.values())
    middle = 1.5 * _WIDTH + _GAP_X + 10
    centre: dict[str, tuple[float, float]] = {}
    for height, rooms in groupby(sorted(level, key=lambda room: level[room]), key=lambda room: level[room]):
        y = (top - height) * (_HEIGHT + _GAP_Y) + _HEIGHT / 2 + 10
        core, wings = [], []
        for room in rooms:
            (wings if room in WINGS else core).append(room)
        for place, room in enumerate(core):
            centre[room] = (middle + (place - (len(core) - 1) / 2) * (_WIDTH + _GAP_X), y)
        for place, room in enumerate(wings):  # from the right, where no core row is wide
            centre[room] = (middle + (1 - place) * (_WIDTH + _GAP_X), y)
    lines, boxes = [], []
    for room, (x, y) in centre.items():
        for below in sorted(direct[room]):
            x1, y1 = centre[below]
            start, end = y1 - _HEIGHT / 2, y + _HEIGHT / 2
            way = f"M{x1:g} {start:g}V{end + _GAP_Y / 2:g}H{x:g}V{end:g}"
            lines.append(f'<path d="{way}" fill="none" stroke="#666" marker-end="url(#up)"/>\n')
        dashed = ' stroke-dasharray="5 4"' if room in WINGS else ""
        corner = f'x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" height="{_HEIGHT}"'
        boxes.append(f'<rect {corner} rx="6" fill="#f4f6f8" stroke="#7a8794"{dashed}/>\n')
        boxes.append(f'<text x="{x:g}" y="{y - 4:g}" font-weight="600">{room}</text>\n')
        boxes.append(f'<text x="{x:g}" y="{y + 13:g}" font-size="12">{_HANDS_UP[room]}</text>\n')
    width, height = 3 * _WIDTH + 2 * _GAP_X + 20, (top + 1) * (_HEIGHT + _GAP_Y) - _GAP_Y + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img" '
        'font-family="system-ui, sans-serif" font-size="14" text-anchor="middle" fill="#1c1c1c">\n'
        "<title>The rooms of the house, and what each hands up</title>\n"
        '<marker id="up" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#666"/></marker>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{"".join(lines + boxes)}</svg>\n'
    )


def _imports() -> dict[str, set[str]]:
    """Room -> the rooms that its modules import; what lies below `models` is the room `records`."""
    imports: dict[str, set[str]] = defaultdict(set)
    for module in MODULES:
        if module not in ("", "__main__", "commands"):
            names = [name.split(".")[1] for _, name in imported(module) if name.startswith("judgecal.")]
            room = _room(room_of(module))
            imports[room] |= {_room(name) for name in names if name in (*CORE, *WINGS)} - {room}
    return imports


def _room(layer: str) -> str:
    return "records" if layer in _GROUND else layer


def _direct(imports: dict[str, set[str]]) -> dict[str, set[str]]:
    """The imports of each room that none of its other imports reaches."""

    def reached(rooms: set[str]) -> set[str]:
        return rooms.union(*(reached(imports[room]) for room in rooms))

    return {
        room: {below for below in imports[room] if below not in reached(imports[room] - {below} - {room})}
        if imports[room]
        else set()
        for room in _HANDS_UP
    }
