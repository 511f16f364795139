"""The folder of engines for whoever builds: proven writable, one builder at a time, each engine whole or not there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jetsel.engines.base import EngineFailedError
from jetsel.engines.building.plans import PLAN, RECORD, Key, Plan, Record, stored
from jetsel.store import flush

ASIDE = ".building-"  # begins the name of all that is not finished: the next builder clears it away
_CHUNK_BYTES = 1 << 20
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def prepare(folder: Path, needed_bytes: int) -> None:
    """Make the folder where there is none, and see that it takes files; raises EngineFailedError with the repair.

    needed_bytes: free space without which a build is not begun.
    """
    trial = folder / f"{ASIDE}trial-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _write(trial, b"written to see whether it can be")
        finally:
            trial.unlink(missing_ok=True)
        free_bytes = shutil.disk_usage(folder).free
    except OSError as fault:
        raise not_saved(folder, fault) from None
    if free_bytes < needed_bytes:
        raise EngineFailedError(
            f"{folder} has {free_bytes / 1e6:.0f} MB free, and a build may need {needed_bytes / 1e6:.0f} MB: free some "
            "space, with: jetsel models build --prune, or name another place with [host] engines"
        )


@contextmanager
def only_builder(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the folder's lock, which the kernel frees if we die, and clear away what a builder that was killed left.

    Two builds at once would take each other's memory, and time their tactics wrongly. waiting: called once where
    another builder has to be waited for. Raises EngineFailedError.
    """
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as fault:
        raise not_saved(folder, fault) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        _clear_up(folder)
        yield
    finally:
        os.close(descriptor)


def install(folder: Path, aside: Path, record: Record) -> Plan:
    """Put the plan that lies at `aside`, in the same folder, and its record into their places; return the engine.

    At no moment does a record speak of another plan than the one beside it. Raises EngineFailedError, and then what was
    there before is gone too or stands whole.
    """
    path = folder / f"{record.key.stem}{PLAN}"
    new = folder / f"{ASIDE}{record.key.stem}{RECORD}"
    try:
        flush(aside)
        path.with_suffix(RECORD).unlink(missing_ok=True)
        flush(folder)
        aside.replace(path)
        _write(new, msgspec.json.format(msgspec.json.encode(record)) + b"\n")
        new.replace(path.with_suffix(RECORD))
        flush(folder)
    except OSError as fault:
        raise not_saved(folder, fault) from None
    return Plan(path, record)


def prune(folder: Path, keep: Collection[Key]) -> list[tuple[Path, int]]:
    """Delete the engines of these keys' models that are of another key, and those without a record that can be used.

    Return what was deleted, and its bytes. Raises EngineFailedError where something cannot be.
    """
    models = {key.onnx_sha256 for key in keep}
    gone = []
    try:
        for path, record in stored(folder):
            if record is None or (record.key.onnx_sha256 in models and record.key not in keep):
                size = path.stat().st_size
                path.with_suffix(RECORD).unlink(missing_ok=True)
                path.unlink()
                gone.append((path, size))
    except OSError as fault:
        raise EngineFailedError(f"{folder}: not pruned: {fault}; use an account that may write there") from None
    return gone


def timing_cache(folder: Path, key: Key) -> Path:
    """Return where the builder's timings for this device and TensorRT lie; they are of no use to any other."""
    return folder / f"timing-{_plain(key.gpu)}-{key.compute_capability}-{_plain(key.tensorrt)}.cache"


def calibration_cache(folder: Path, key: Key, photographs_sha256: str) -> Path:
    """Return where the scales lie that int8 took from these photographs, for this model and TensorRT."""
    return folder / f"calibration-{key.onnx_sha256[:12]}-{photographs_sha256[:12]}-{_plain(key.tensorrt)}.cache"


def sha256_of(path: Path) -> str:
    """Return a file's SHA-256 in hexadecimal; raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def not_saved(folder: Path, fault: OSError) -> EngineFailedError:
    """Return the error of a folder that does not take engines, with what to do about it."""
    repair = (
        "free some space there"
        if fault.errno in _NO_SPACE
        else "use an account that may write there, or name another place with [host] engines"
        if fault.errno in _NOT_ALLOWED
        else "repair this, or name another place with [host] engines"
    )
    return EngineFailedError(f"{folder}: engines cannot be saved there ({fault.strerror or fault}): {repair}")


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text)[:64]


def _clear_up(folder: Path) -> None:
    with contextlib.suppress(OSError):  # what stays does no harm
        for path in (*folder.glob(f"{ASIDE}*"), *folder.glob("*.cache.*")):
            path.unlink()


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
