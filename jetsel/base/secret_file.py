"""Passwords and tokens in files: the one reader, which refuses a file that every user may read."""

from __future__ import annotations

import stat
from pathlib import Path

from jetsel.base.errors import ConfigError
from jetsel.base.files import read_bounded

MOST_BYTES = 4096


def read_secret(path: Path, setting: str) -> str:
    """Return the text of a file; raises ConfigError that names the option or setting if others could read it too."""
    try:
        mode = path.stat().st_mode
        secret = read_bounded(path, MOST_BYTES).decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"{setting} {path}: cannot be read: {error}") from None
    if stat.S_IMODE(mode) & 0o007:
        raise ConfigError(f"{setting} {path}: every user may read it: chmod o-rwx {path}")
    return secret
