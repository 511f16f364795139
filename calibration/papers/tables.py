"""A table in Markdown, as the commands of this folder print them."""

from __future__ import annotations


def table(title: str, columns: str, rows: list[str]) -> str:
    """Return a table in Markdown under a title; columns and rows: cells parted by |."""
    line = "|".join(["---"] * (columns.count("|") + 1))
    return "\n".join([f"## {title}", "", f"| {columns} |", f"|{line}|", *(f"| {row} |" for row in rows), ""])
