"""Which folders models are read from: one rule for the daemon and every command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jetsel.base.config import Models, fleet_folder
from jetsel.base.errors import ConfigError
from jetsel.base.state import state_folder
from jetsel.zoo.store import STARTER


def model_folders(models: Models, environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folders to scan, those that are trusted first: the starter family's, models.paths, the owner's own.

    The owner's own (see `own_folder`) is left out where it is not there. Where a fleet's plan is installed, its folders
    stand in the place of the starter family's and of the owner's own: the plan says which models there are.
    """
    planned = planned_folders(environment)
    if planned:
        return [*planned, *map(Path, models.paths)]
    folders = [*([STARTER] if models.starter else []), *map(Path, models.paths)]
    own = own_folder(environment)
    if _stands(own) and own not in folders:
        folders.append(own)
    return folders


def planned_folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Return the folder of each family that `jetsel agent` has installed, in the plan's order; see planned_name."""
    current = fleet_folder(environment) / "installed" / "current"
    try:
        return sorted(path for path in current.iterdir() if path.is_dir()) if _stands(current) else []
    except FileNotFoundError:
        raise ConfigError(
            f"{current}: leads to no folder: remove it, and run `jetsel agent run`, which installs the plan again"
        ) from None


def planned_name(place: int, family: str) -> str:
    """Return what the folder of a plan's family is called, which keeps the order."""
    return f"{place:03d}-{family}"


def planned_families(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the families of the plan in use, in its order."""
    return [path.name.partition("-")[2] for path in planned_folders(environment)]


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
