"""The file in which `jetsel watch` writes the states of its cameras for the gateway: format, limits and location."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from jetsel.base import files

MAX_BYTES = 256 * 1024  # of a file
FRESH_S = 30.0  # an older file is ignored
WRITE_INTERVAL_S = 1.0  # shortest interval between two writes
_FOLDER = "jetsel-watch"
_SERVICE_PATH = Path("/run", _FOLDER, "state.json")

Name = Annotated[str, Meta(min_length=1, max_length=128)]
Words = Annotated[str, Meta(max_length=512)]
Count = Annotated[int, Meta(ge=0, le=2**53)]


class CameraState(Struct, frozen=True):
    """State of a watched camera, or of one region of its image; null: unknown, or no region.

    reason: why no frame comes, null if frames come. label, wnid (its identifier), probability, since: of the current
    label, null before the first; `unknown` and a null wnid if the answer is in doubt. since: ISO 8601, UTC.
    """

    name: Name
    connected: bool
    region: Name | None
    family: Name | None
    reason: Words | None
    label: Words | None
    wnid: Words | None
    since: Words | None
    probability: Annotated[float, Meta(ge=0, le=1)] | None
    frames_read: Count
    frames_skipped: Count
    frames_asked: Count
    label_changes: Count


class _File(Struct, frozen=True):
    """A file. written_s: by time.monotonic(), which all processes share. cameras: CameraStates, not yet decoded."""

    written_s: float
    pid: Annotated[int, Meta(gt=0, le=2**31)]
    cameras: Sequence[msgspec.Raw]


def own_path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that this process writes: a service's, or else a user's; None if there is no runtime folder."""
    if service := environment.get("RUNTIME_DIRECTORY"):
        return Path(service.split(":")[0], _SERVICE_PATH.name)
    user = environment.get("XDG_RUNTIME_DIR")
    return Path(user, _FOLDER, f"{os.getpid()}.json") if user else None


def write(path: Path, states: Sequence[CameraState]) -> None:
    """Replace the file by one with these cameras; those beyond MAX_BYTES are left out. Raises OSError."""
    free_bytes, cameras = MAX_BYTES - 1024, []
    for state in states:
        camera = msgspec.json.encode(state)
        free_bytes -= len(camera) + 1
        if free_bytes < 0:
            break
        cameras.append(msgspec.Raw(camera))
    path.parent.mkdir(mode=0o750, exist_ok=True)
    files.replace(path, msgspec.json.encode(_File(time.monotonic(), os.getpid(), cameras)), 0o640)


def read(environment: Mapping[str, str] = os.environ) -> list[CameraState]:
    """Return the cameras of all running `jetsel watch`, sorted by name and region; unreadable entries are skipped."""
    user = environment.get("XDG_RUNTIME_DIR")
    paths = [_SERVICE_PATH, *sorted(Path(user, _FOLDER).glob("[0-9]*.json") if user else ())]
    oldest_first = sorted((file for path in paths for file in _read_file(path)), key=lambda file: file.written_s)
    decoded = (state for file in oldest_first for raw in file.cameras for state in _decode_camera(raw))
    states = {(state.name, state.region or ""): state for state in decoded}  # a newer file's state replaces an older
    return [states[key] for key in sorted(states)]


def _read_file(path: Path) -> Iterator[_File]:
    """Yield the file's content, or nothing if it is unreadable or old, or if the process that wrote it has ended."""
    try:
        file = msgspec.json.decode(files.read_bounded(path, MAX_BYTES), type=_File)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    if 0 <= time.monotonic() - file.written_s <= FRESH_S and _is_running(file.pid):
        yield file


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # sends no signal, but checks that the process exists
    except PermissionError:
        return True  # it runs, as another user
    except OSError:
        return False
    return True


def _decode_camera(raw: msgspec.Raw) -> Iterator[CameraState]:
    """Yield the decoded state, or nothing if it is malformed."""
    try:
        yield msgspec.json.decode(raw, type=CameraState)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
