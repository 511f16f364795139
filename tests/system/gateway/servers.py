"""Debian's servers around a gateway: started with a configuration of the test's own, ended with the block."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def blocks(page: str, section: str, language: str) -> list[str]:
    """The fenced blocks of a language in a section of a page, which ends at the next heading."""
    text = re.split(rf"^#+ {section}\n", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    text = re.split(r"^##", text, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def adapted(text: str, changes: dict[str, str]) -> str:
    """The text with other paths, ports and secrets; each must be in it."""
    for was, now in changes.items():
        assert was in text, f"{was} is not in {text}"
        text = text.replace(was, now)
    return text


@contextmanager
def running(*command: object, folder: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server while the block lasts; what it says is in `said` in the folder."""
    words, nothing = [*map(str, command)], subprocess.DEVNULL
    with (
        (folder / "said").open("wb") as said,
        subprocess.Popen(
            words, cwd=folder, env={**os.environ, **environment}, stdin=nothing, stdout=said, stderr=said
        ) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
