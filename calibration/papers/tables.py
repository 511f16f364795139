"""A table in Markdown, as the commands of this folder print them, and the result files that they write."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def table(title: str, columns: str, rows: list[str]) -> str:
    """Return a table in Markdown under a title; columns and rows: cells parted by |."""
    line = "|".join(["---"] * (columns.count("|") + 1))
    return "\n".join([f"## {title}", "", f"| {columns} |", f"|{line}|", *(f"| {row} |" for row in rows), ""])


def written(name: str, text: str, conditions: str = "") -> None:
    """Write a result file, which the pages of this folder quote, and print it. conditions: more for its head."""
    whole = f"{head(conditions)}\n\n{text}"
    (RESULTS / f"{name}.md").write_text(whole, encoding="utf-8")
    print(whole, flush=True)


def head(conditions: str = "") -> str:
    """Return the first line of a result file: the command that runs, its commit, and the conditions, if it has any.

    Of files and folders that are named in full, the command has the last name alone.
    """
    spec = sys.modules["__main__"].__spec__
    module = "" if spec is None else spec.name.removesuffix(".__main__")
    words = [Path(word).name if Path(word).is_absolute() else word for word in sys.argv[1:]]
    line = f"Written by `{shlex.join(['python', '-m', module, *words])}` at commit {COMMIT}."
    return f"{line} {conditions}".rstrip()


def _commit() -> str:
    """Return the commit of the code that runs, and whether the code was changed since."""
    last = _git("rev-parse", "--short=8", "HEAD").stdout.strip()
    return last if _git("diff", "--quiet", "HEAD", "--", "*.py").returncode == 0 else f"{last}, changed since"


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(HERE.parents[1]), *words], capture_output=True, text=True, check=False)


COMMIT = _commit()  # when the command starts: what is written hours later is still of this code
