"""A table in Markdown, as the commands of this folder print them, and the folder that they write them to."""

from __future__ import annotations

from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def table(title: str, columns: str, rows: list[str]) -> str:
    """Return a table in Markdown under a title; columns and rows: cells parted by |."""
    line = "|".join(["---"] * (columns.count("|") + 1))
    return "\n".join([f"## {title}", "", f"| {columns} |", f"|{line}|", *(f"| {row} |" for row in rows), ""])


def written(name: str, text: str, folder: Path = RESULTS) -> None:
    """Write a result file, which the pages of this folder quote, and print it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    print(text, flush=True)
