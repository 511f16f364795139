"""What a real daemon answers over its socket: label, models that ran and doubt of each photograph, by policy."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.system.daemons import Peer, launch, wait_until_ready

MODELS = ("xs", "s", "m", "l", "xl")
ASKED: dict[str, dict[str, Any]] = {
    **{f"single:{model}": {"model": model} for model in MODELS},
    **{name: {"policy": name} for name in ("chain", "cascade", "cascade-averaged", "embedding")},
    **{f"{name}, top5": {"policy": name, "criterion": "top5"} for name in ("chain", "cascade", "cascade-averaged")},
}
"""Name in the record -> what the request says."""


def photographs(folders: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Give each photograph of folders with a folder a class: its name below the folder's parent, and its bytes."""
    for folder in folders:
        for path in sorted(folder.glob("*/*")):
            yield str(path.relative_to(folder.parent)), path.read_bytes()


def answers(folders: Sequence[Path]) -> dict[str, dict[str, str]]:
    """Ask a daemon of our own, one request at a time, with the calibration that ships.

    Return photograph -> name of `ASKED` -> "wnid model+model doubt", where doubt is 0 or 1.
    """
    with tempfile.TemporaryDirectory() as folder:
        daemon = launch(Path(folder), "[server]\nworkers = 1\n", env={"STATE_DIRECTORY": folder})
        try:
            wait_until_ready(daemon)
            peer = Peer(daemon.endpoint)
            try:
                return {
                    name: {asked: _told(peer.classify(image, **fields)) for asked, fields in ASKED.items()}
                    for name, image in photographs(folders)
                }
            finally:
                peer.close()
        finally:
            daemon.stop()


def _told(answer: dict[str, Any]) -> str:
    ran = "+".join(run["model"] for run in answer["ran"])
    return f"{answer['wnid']} {ran} {int(answer['in_doubt'])}"
