"""Whether readings come from a plain file, such as a recording or a copy of a board's tree: no sensor renews those.

What such a file holds is the power from when it was written on: each read of it is new, however often it is the same.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
STORES = ("btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "rootfs", "squashfs", "tmpfs", "vfat", "xfs")
"""File systems of /proc/filesystems that keep what was written; sysfs and fuse make it up when it is read."""


def is_plain(where: str) -> bool:
    """Return whether a rail's `where` ends with a path in a file system that only keeps what was written."""
    path = where.rpartition(" in ")[2]
    return Path(path).exists() and filesystem(path) in STORES


def filesystem(path: str) -> str | None:
    """Return the type of the file system that a path lies in (proc(5), mountinfo), None where that is not told."""
    real = os.path.realpath(path)
    kind, longest = None, 0
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return None
    for line in lines:
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), before.split(" ")[4])
        if len(point) >= longest and (point == "/" or real == point or real.startswith(f"{point}/")):
            kind, longest = after.split(" ")[0], len(point)
    return kind
