"""Builds HTML and SVG as a tree of elements, so that no string of the owner's is ever read as markup."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import TypeAlias

Node: TypeAlias = ET.Element
Child: TypeAlias = "Node | str | None"
Attribute: TypeAlias = "str | float | None"

# What neither HTML nor XML can carry (controls, the surrogates of a path that is no UTF-8), and what turns the
# direction of the text around it.
UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def clean(text: str) -> str:
    """Return the text with a replacement character for each one that a page cannot carry."""
    return UNPRINTABLE.sub("\ufffd", text)


def el(tag: str, *children: Child, **attributes: Attribute) -> Node:
    """Return an element; strings among the children become text, None among children and attributes is left out.

    An underscore in an attribute's name stands for a hyphen, one at its end for nothing: `class_`, `text_anchor`.
    """
    node = ET.Element(tag)
    for name, value in attributes.items():
        if value is not None:
            node.set(name.rstrip("_").replace("_", "-"), _written(value))
    return extend(node, children)


def extend(node: Node, children: Iterable[Child]) -> Node:
    """Append the children to the element, and return it."""
    for child in children:
        if isinstance(child, ET.Element):
            node.append(child)
        elif child is not None and len(node):
            node[-1].tail = (node[-1].tail or "") + clean(child)
        elif child is not None:
            node.text = (node.text or "") + clean(child)
    return node


def items(texts: Iterable[Child], **attributes: Attribute) -> Node:
    """Return a bulleted list, one item for each child."""
    return el("ul", *[el("li", text) for text in texts], **attributes)


def document(head: Node, body: Node) -> str:
    """Return the whole page as text."""
    root = el("html", head, body, lang="en")
    return "<!doctype html>\n" + ET.tostring(root, encoding="unicode", method="html") + "\n"


def _written(value: str | float) -> str:
    if isinstance(value, str):
        return clean(value)
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
