"""What every chart is made of: texts whose width is known, marks, a legend, and the picture with its description.

All lengths are units of the drawing, which is 360 wide: about one pixel each on a phone.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import Literal

from msgspec import Struct

from jetsel.calibrate.report.markup import Node, clean, el, extend

WIDTH = 360.0
LABEL, TICK = 12.0, 11.0  # font sizes, as in style.css
LINE = 17.0  # from one line of text to the next
MARKS = 6  # how many series can be told apart by shape and colour

Anchor = Literal["start", "middle", "end"]


class Drawing(Struct, frozen=True):
    """Part of a chart, from 0 to its height."""

    height: float
    nodes: list[Node]


def width_of(text: str, size: float = LABEL) -> float:
    """How wide the text is at most, bold too, in a wide sans-serif font (DejaVu Sans); system fonts are narrower."""
    return size * sum(map(_ems, text))


def _ems(character: str) -> float:
    if character in "ijl.,:;'|!()[] \u00a0":
        return 0.45
    if character in "mwMW%@\u2026" or unicodedata.east_asian_width(character) in "WF":
        return 1.08
    return 0.84 if character.isupper() else 0.72


def fitted(text: str, room: float, size: float = LABEL) -> str:
    """The text, or as much of its beginning and end as the room holds with a mark of omission between."""
    text = clean(text)
    kept = text
    while width_of(kept, size) > room and len(text) > 2:
        middle = len(text) // 2
        text = text[:middle] + text[middle + 1 :]
        kept = text[: (len(text) + 1) // 2] + "\u2026" + text[(len(text) + 1) // 2 :]
    return kept


def write(x: float, y: float, text: str, anchor: Anchor = "start", class_: str = "label") -> Node:
    """A line of text whose baseline is at y."""
    return el("text", text, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Node:
    """A straight line."""
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def mark(series: int, x: float, y: float) -> Node:
    """The mark of a series: its shape tells it apart where its colour does not."""
    class_ = f"mark s{series % MARKS}"
    match series % MARKS:
        case 0 | 4:
            return el("circle", cx=x, cy=y, r=4.0, class_=class_)
        case 1:
            return el("rect", x=x - 3.6, y=y - 3.6, width=7.2, height=7.2, class_=class_)
        case 2:
            return _polygon(class_, (x, y - 4.8), (x + 4.6, y + 3.4), (x - 4.6, y + 3.4))
        case 3:
            return _polygon(class_, (x, y - 5.2), (x + 5.2, y), (x, y + 5.2), (x - 5.2, y))
        case _:
            return _polygon(class_, (x, y + 4.8), (x + 4.6, y - 3.4), (x - 4.6, y - 3.4))


def legend(names: Sequence[str], lines: Collection[str] = ()) -> Drawing:
    """The name of each series beside its mark, on as many lines as that takes; nothing for one series alone.

    lines: the series that are drawn without marks.
    """
    if len(names) < 2:
        return Drawing(0.0, [])
    nodes: list[Node] = []
    x, y = 6.0, 12.0
    for series, name in enumerate(names):
        text = fitted(name, WIDTH - 24)
        if x > 6 and x + 10 + width_of(text) > WIDTH:
            x, y = 6.0, y + LINE
        sample = el("path", d=f"M{x - 6:g} {y - 4:g}h12", class_=f"line s{series % MARKS}")
        nodes += [sample if name in lines else mark(series, x, y - 4), write(x + 10, y, text)]
        x += 24 + width_of(text)
    return Drawing(y + 8, nodes)


def stack(*drawings: Drawing) -> Drawing:
    """The drawings beneath each other."""
    nodes, height = [], 0.0
    for drawing in drawings:
        if drawing.nodes:
            nodes.append(extend(el("g", transform=f"translate(0 {height:g})"), drawing.nodes))
            height += drawing.height
    return Drawing(height, nodes)


def picture(key: str, title: str, description: str, drawing: Drawing) -> Node:
    """The drawing as an image with a name and a description. key: unique in the page."""
    named = el("title", title, id=f"{key}-title"), el("desc", description, id=f"{key}-desc")
    shape = {"viewBox": f"0 0 {WIDTH:g} {drawing.height:g}"}
    described = {"role": "img", "aria_labelledby": f"{key}-title", "aria_describedby": f"{key}-desc"}
    return el("svg", *named, *drawing.nodes, **shape, **described)


def figure(key: str, title: str, finding: str, drawing: Drawing, numbers: Node) -> Node:
    """A chart under its title and what it shows in words, with the numbers behind it."""
    caption = el("figcaption", el("strong", title), " ", finding)
    folded = el("details", el("summary", "The numbers"), numbers)
    return el("figure", caption, picture(key, title, finding, drawing), folded, id=key)


def absent(key: str, title: str, reason: str) -> Node:
    """What stands where a chart has nothing to show."""
    return el("figure", el("figcaption", el("strong", title), " ", reason), class_="absent", id=key)


def _polygon(class_: str, *corners: tuple[float, float]) -> Node:
    return el("polygon", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners), class_=class_)
