"""Which folders models are read from: one rule for the daemon and every command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jetsel.config import Models
from jetsel.state import state_folder
from jetsel.zoo.store import STARTER


def model_folders(models: Models, environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folders to scan, those that are trusted first: the starter family's, models.paths, the owner's own.

    The owner's own (see `own_folder`) is left out where it is not there.
    """
    folders = [*([STARTER] if models.starter else []), *map(Path, models.paths)]
    own = own_folder(environment)
    if _stands(own) and own not in folders:
        folders.append(own)
    return folders


def own_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return where models are added unless the configuration names a folder: `models`, see state.state_folder."""
    return state_folder("models", environment)


def _stands(folder: Path) -> bool:
    """Whether it is there; one that this user may not enter is, so that the scan says so."""
    try:
        folder.lstat()
    except PermissionError:
        return True
    except OSError:
        return False
    return True
