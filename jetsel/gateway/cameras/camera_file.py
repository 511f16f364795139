"""The gate of a camera in a jetsel.toml: one line of its [[cameras]] table; the rest of the file stays as it is."""

from __future__ import annotations

import copy
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from jetsel.base import files
from jetsel.base.errors import ConfigError, did_you_mean

_HEADER = re.compile(r"""[ \t]*\[""")
_CAMERA = re.compile(r"""[ \t]*\[\[[ \t]*(?:cameras|"cameras"|'cameras')[ \t]*\]\]""")
_NAME = re.compile(r"""(?P<indent>[ \t]*)(?:name|"name"|'name')[ \t]*=""")
_GATE = re.compile(r"""(?P<key>[ \t]*(?:gate|"gate"|'gate')[ \t]*=[ \t]*)(?P<value>"[^"\\\r\n]*"|'[^'\r\n]*')""")


def with_gate(text: str, camera: str, gate: str) -> str:
    """Return the text of a jetsel.toml with `gate` as that of the camera; all else, comments too, is as it was.

    gate: as `gate_of` reads it. Raises ConfigError with the repair if the text is no TOML, has no such camera or
    several, or is written in a way that this cannot edit.
    """
    before = _parsed(text)
    number = _number_of(camera, before.get("cameras"))
    wanted = copy.deepcopy(before)
    wanted["cameras"][number]["gate"] = gate
    edited = _edited(text, number, json.dumps(gate))
    if edited is None or not _is_toml(edited) or _parsed(edited) != wanted:
        raise ConfigError(f"the table of camera {camera} cannot be edited: write gate = {json.dumps(gate)} into it")
    return edited


def rewrite(path: Path, text: str) -> None:
    """Have a file hold this text, or what it held before; its owner and mode stay, as it may hold a password.

    A link is followed. Raises OSError.
    """
    path = path.resolve()
    was = path.stat()
    temporary = path.with_name(f"{files.TEMPORARY}{os.getpid()}-{path.name}")
    try:
        temporary.touch(0o600)
        files.write(temporary, text.encode())
        if (was.st_uid, was.st_gid) != (temporary.stat().st_uid, temporary.stat().st_gid):
            os.chown(temporary, was.st_uid, was.st_gid)
        temporary.chmod(was.st_mode & 0o7777)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    files.flush(path.parent)


def _parsed(text: str) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = msgspec.toml.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"not TOML: {error}") from None
    return plain


def _is_toml(text: str) -> bool:
    try:
        _parsed(text)
    except ConfigError:
        return False
    return True


def _number_of(camera: str, cameras: Any) -> int:
    """Return which of the [[cameras]] has this name."""
    found = cameras if isinstance(cameras, list) else []
    names = [one.get("name") if isinstance(one, dict) else None for one in found]
    if names.count(camera) == 1:
        return names.index(camera)
    if camera in names:
        raise ConfigError(
            f"{names.count(camera)} of the [[cameras]] have the name {camera}: give each a name of its own"
        )
    known = [name for name in names if isinstance(name, str)]
    listed = f"those of the file are {', '.join(known)}" if known else "the file has none"
    raise ConfigError(
        f"no [[cameras]] table has the name {camera}{did_you_mean(camera, known)}: {listed}; "
        f"add [[cameras]] with a line name = {json.dumps(camera)}, or leave --camera out"
    )


def _edited(text: str, number: int, value: str) -> str | None:
    """Return the text with the gate of the camera of this number; None if its table is not found."""
    lines = text.splitlines(keepends=True)  # also where TOML has no end of a line: such text does not pass the check
    begins = [at for at, line in enumerate(lines) if _CAMERA.match(line) and _is_outside(lines, at)]
    if number >= len(begins):
        return None
    begin = begins[number] + 1
    heads = (at for at in range(begin, len(lines)) if _HEADER.match(lines[at]) and _is_outside(lines, at))
    body = range(begin, next(heads, len(lines)))
    for at in body:
        gate = _GATE.match(lines[at])
        if gate is not None and _is_outside(lines, at):
            lines[at] = f"{gate['key']}{value}{lines[at][gate.end() :]}"
            return "".join(lines)
    for at in body:
        name = _NAME.match(lines[at])
        if name is not None and _is_outside(lines, at):
            end = "\r\n" if lines[at].endswith("\r\n") else "\n"
            lines[at] = f"{lines[at].rstrip(chr(13) + chr(10))}{end}{name['indent']}gate = {value}{end}"
            return "".join(lines)
    return None


def _is_outside(lines: list[str], at: int) -> bool:
    """Whether a line begins outside of strings and arrays of several lines: what is before it is whole."""
    return _is_toml("".join(lines[:at]))
