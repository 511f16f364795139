"""Mounting and unmounting a FUSE file system by mount(2), which needs root, so that no libfuse is needed."""

from __future__ import annotations

import ctypes
import os
import stat
from pathlib import Path

DEVICE = Path("/dev/fuse")

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 2, 4, 8  # linux/mount.h
_MNT_DETACH = 2
_CAP_SYS_ADMIN = 21  # linux/capability.h


def unavailable() -> str | None:
    """Why no FUSE file system can be mounted here, with the repair; None where one can."""
    if not DEVICE.exists():
        return "there is no /dev/fuse: load the kernel module (modprobe fuse), or give the container the device"
    if not _may_mount():
        return "mounting needs root (CAP_SYS_ADMIN): run make test-system as root"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "/dev/fuse cannot be opened: give the container the device (--device /dev/fuse)"
    return None


def mount(folder: Path) -> int:
    """Mount an empty connection on `folder` and return its descriptor, on which the kernel's requests arrive."""
    connection = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    options = (
        f"fd={connection},rootmode={stat.S_IFDIR:o},user_id={os.getuid()},group_id={os.getgid()},"
        "allow_other,default_permissions"
    )
    flags = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
    if _libc().mount(b"power-simulator", os.fsencode(folder), b"fuse", flags, options.encode()) != 0:
        number = ctypes.get_errno()
        os.close(connection)
        raise OSError(number, f"cannot mount on {folder}: {os.strerror(number)}")
    return connection


def unmount(folder: Path) -> None:
    """Unmount at once, whoever still has files open there; no error where nothing is mounted."""
    _libc().umount2(os.fsencode(folder), _MNT_DETACH)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _may_mount() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> _CAP_SYS_ADMIN & 1)
