"""Put a model into a folder, whole or not at all, and take one out; a daemon may be reading the folder meanwhile.

A manifest is what makes a model: see jetsel.base.versions, whose record it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from jetsel.base import files, versions
from jetsel.base.errors import ManifestError
from jetsel.base.files import read_bounded, sha256_of
from jetsel.base.versions import publish, withdraw
from jetsel.zoo.manifest import MAX_BYTES, Manifest
from jetsel.zoo.store import Model


@contextmanager
def working_folder(folder: Path) -> Iterator[Path]:
    """Give an empty folder on the same disk to prepare a model in, for as long as a `with` lasts.

    `folder` is made if it is not there. One command at a time has it; others wait. Raises ManifestError if this
    user may not write there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with versions.working_folder(folder, partial(_is_named, folder)) as work:
            yield work
    except OSError as error:
        repair = files.repair_of(error, "name another folder with --folder")
        raise ManifestError(f"{folder}: {error.strerror or error}; nothing was changed there: {repair}") from error


def put(
    work: Path,
    weights: Path,
    labels: bytes,
    manifest: Manifest,
    replaced: Model | None,
    others: Mapping[str, bytes] = MappingProxyType({}),
) -> Path:
    """Bring weights prepared in a working folder into its folder, with labels and manifest; return the manifest's path.

    manifest: the names of its files are those that they get; they hold a part of the hash, so that a file that stands
    there under its name is the very same and stays. replaced: the model of that folder in whose place this one comes.
    others: the content of each of `manifest.others`, by name. Raises ManifestError if a manifest of this name stands
    there, OSError; then nothing has changed.
    """
    folder = work.parent
    target = folder / f"{manifest.family}.{manifest.name}.json" if replaced is None else replaced.manifest_path
    if replaced is None and target.exists():
        raise ManifestError(f"{target}: already exists, see jetsel models list: choose another name, or delete it")
    weights.rename(work / manifest.file)
    (work / manifest.labels).write_bytes(labels)
    for name, content in others.items():
        (work / name).write_bytes(content)
    (work / target.name).write_bytes(msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n")
    new = [name for name in manifest.files if not _is_same(work / name, folder / name)]
    old = () if replaced is None else replaced.manifest.files
    publish(work, [*new, target.name], old)
    return target


def take_out(model: Model) -> None:
    """Remove a model's manifest, and then its other files unless another manifest of the folder names them.

    Raises ManifestError if this user may not; then nothing has changed.
    """
    with working_folder(model.directory) as work:
        withdraw(work, model.manifest_path.name, model.manifest.files)


def _is_same(new: Path, old: Path) -> bool:
    return old.is_file() and sha256_of(new) == sha256_of(old)


def _is_named(folder: Path, name: str) -> bool:
    """Whether a manifest of the folder names this file; also if one cannot be read, since it may name any."""
    for path in folder.glob("*.json"):
        try:
            plain = msgspec.json.decode(read_bounded(path, MAX_BYTES))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return True
        if isinstance(plain, dict) and name in _texts(plain):
            return True
    return False


def _texts(plain: dict[str, Any]) -> list[Any]:
    """All that a manifest says, one level deep: whichever key a file is named under, it is found."""
    inner = [value for value in plain.values() if isinstance(value, dict)]
    return [value for part in (plain, *inner) for value in part.values()]
