"""Put a model into a folder, whole or not at all, and take one out; a daemon may be reading the folder meanwhile.

A manifest is what makes a model, so it comes last and goes first, each time by one rename. What a command was doing
when it was cut off lies in a folder beside it whose manifest says which files it was about: the next command removes
those that no manifest of the folder itself names.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jetsel.errors import ManifestError
from jetsel.store import flush
from jetsel.zoo.manifest import MAX_BYTES, Manifest, read_manifest
from jetsel.zoo.reading import read_bounded
from jetsel.zoo.store import Model

_NEW, _OLD = ".jetsel-adding", ".jetsel-removing"
_MANIFEST = "manifest.json"
_CHUNK_BYTES = 1 << 20


@contextmanager
def workplace(folder: Path) -> Iterator[Path]:
    """Give an empty folder on the same disk to prepare a model in, for as long as a `with` lasts.

    `folder` is made where it is not there, and removed again where nothing came of it. One command at a time has it;
    others wait. Raises ManifestError where this user may not write there.
    """
    made = not folder.is_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            _clear_up(folder)
            try:
                (folder / _NEW).mkdir()
                yield folder / _NEW
            finally:
                _clear_up(folder)
    except OSError as error:
        raise ManifestError(
            f"{folder}: {error.strerror or error}; nothing was changed there: free some space, use an account that may "
            "write there, or name another folder with --folder"
        ) from error
    finally:
        if made:
            with contextlib.suppress(OSError):  # not empty: something came of it
                folder.rmdir()


def copy_weights(source: Path, aside: Path, suffix: bytes = b"") -> tuple[str, str]:
    """Copy an ONNX file to `aside`, append `suffix`, and return both hashes: the source's and the copy's.

    Raises ManifestError where the source cannot be read, and OSError where the copy cannot be written.
    """
    read = hashlib.sha256()
    try:
        handle = source.open("rb")
    except OSError as error:
        raise ManifestError(f"{source}: cannot be read: {error.strerror}; name the ONNX file") from error
    with handle, aside.open("wb") as copy:
        while chunk := handle.read(_CHUNK_BYTES):
            read.update(chunk)
            copy.write(chunk)
        copy.write(suffix)
    written = read.copy()
    written.update(suffix)
    return read.hexdigest(), written.hexdigest()


def put(aside: Path, weights: Path, labels: bytes, manifest: Manifest, replaced: Model | None) -> Path:
    """Bring weights prepared in a workplace into its folder, with labels and manifest; return the manifest's path.

    manifest: its `file` and `labels` are the names that they get; they hold a part of the hash, so that what stands
    there under another hash is never overwritten. replaced: the model of that folder in whose place this one comes.
    Raises ManifestError where a manifest of this name stands there, OSError; then nothing has changed.
    """
    folder = aside.parent
    target = folder / f"{manifest.family}.{manifest.name}.json" if replaced is None else manifest_path(replaced)
    if replaced is None and target.exists():
        raise ManifestError(f"{target}: is there already and cannot be used, see jetsel models list: remove it first")
    if replaced is not None:  # its files go once nothing names them
        (folder / _OLD).mkdir()
        shutil.copyfile(target, folder / _OLD / _MANIFEST)
    weights.replace(aside / manifest.file)
    (aside / manifest.labels).write_bytes(labels)
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    (aside / _MANIFEST).write_bytes(content)
    (aside / "new").write_bytes(content)
    for path in aside.iterdir():
        flush(path)
    for name in (manifest.file, manifest.labels):
        (aside / name).replace(folder / name)
    flush(folder)
    (aside / "new").replace(target)
    flush(folder)
    return target


def take_out(model: Model) -> None:
    """Remove a model's manifest, and then its weights and labels unless another manifest of the folder names them.

    Raises ManifestError where this user may not; then nothing has changed.
    """
    folder = model.directory
    try:
        with _alone(folder):
            _clear_up(folder)
            manifest = manifest_path(model)
            (folder / _OLD).mkdir()
            manifest.replace(folder / _OLD / _MANIFEST)
            flush(folder)
            _clear_up(folder)
    except OSError as error:
        raise ManifestError(
            f"{folder}: {model.manifest.name} was not removed: {error.strerror or error}; use an account that "
            "may write there"
        ) from error


def manifest_path(model: Model) -> Path:
    """Return the file that the model's manifest was read from; raises ManifestError where it is gone."""
    for path in sorted(model.directory.glob("*.json")):
        with contextlib.suppress(ManifestError):
            if read_manifest(path) == model.manifest:
                return path
    raise ManifestError(f"{model.directory}: the manifest of {model.manifest.name} has changed meanwhile; try again")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the kernel frees if we die."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _clear_up(folder: Path) -> None:
    """Remove what was prepared or is to go, and of the files that it was about those that no manifest names."""
    for aside in (folder / _NEW, folder / _OLD):
        if not aside.is_dir():
            continue
        if (aside / _MANIFEST).exists():
            with contextlib.suppress(ManifestError):  # cut off while it was written: nothing else had been done
                for name in _idle(_named(aside / _MANIFEST), folder):
                    (folder / name).unlink(missing_ok=True)
        shutil.rmtree(aside)


def _idle(names: set[str], folder: Path) -> set[str]:
    """Return those that no manifest of the folder names; none where one cannot be read, since it may name any."""
    try:
        return names.difference(*(_named(path) for path in folder.glob("*.json")))
    except ManifestError:
        return set()


def _named(manifest: Path) -> set[str]:
    """Return the files that a manifest names, also where it is refused for another reason.

    Raises ManifestError where it is no JSON, or larger than any manifest.
    """
    try:
        plain = msgspec.json.decode(read_bounded(manifest, MAX_BYTES, "a manifest"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(f"{manifest}: not JSON: {error}") from None
    names = {plain.get("file"), plain.get("labels")} if isinstance(plain, dict) else set()
    return {name for name in names if isinstance(name, str) and name == Path(name).name and name not in ("", "..")}
