"""Makes the trees of sysfs that the texts in boards/ describe: what each board's power monitors look like to Linux.

A section is a folder, a line in it `file = content` or `link -> target`, from the root of the tree. README.md beside it
says from which documents, and how contents are written.
"""

import os
import tempfile
from functools import cache
from pathlib import Path

TEXTS = Path(__file__).parent / "boards"
BOARDS = tuple(sorted(text.stem for text in TEXTS.glob("*.txt")))
DEVICE_TREE = "firmware/"

_made = tempfile.TemporaryDirectory(prefix="jetsel-boards-")  # until the process ends


@cache
def tree(board: str) -> Path:
    """Return a board's tree, the root of its sysfs, for tests that change nothing in it."""
    return write(board, Path(_made.name) / board)


def write(board: str, root: Path) -> Path:
    """Write a board's tree under a folder, and return that."""
    section = ""
    for line in (TEXTS / f"{board}.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            (root / section).mkdir(parents=True)
        elif " -> " in line:
            name, _, target = line.partition(" -> ")
            (root / section / name).symlink_to(os.path.relpath(root / target, root / section))
        elif line:
            name, _, content = line.partition(" = ")
            said = content.encode().decode("unicode_escape") if section.startswith(DEVICE_TREE) else f"{content}\n"
            (root / section / name).write_text(said, "latin-1")
    return root
