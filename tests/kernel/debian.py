"""Debian's kernel, and the sensor drivers that Debian leaves out, built as modules from that kernel's source."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

NEEDED = {"apt-get": "apt", "dpkg-deb": "dpkg", "tar": "tar", "xz": "xz-utils", "make": "make", "gcc-12": "gcc-12"}
MEDIA = ("v4l2-core", "mc", "common/v4l2-tpg", "common/videobuf2", "cec/core", "rc", "test-drivers/vivid")  # a camera
PARTS = (
    *("drivers/virtio", "drivers/char", "drivers/i2c", "net/9p", "fs/9p", "fs/netfs", "fs/fscache"),
    *(f"drivers/media/{part}" for part in MEDIA),
)
KEPT = ("boot/vmlinuz-*", *(f"lib/modules/*/kernel/{part}/*" for part in PARTS))
DRIVERS = ("ina3221", "ina238")


class MissingError(Exception):
    """What this machine lacks, and how to get it."""


class Kernel(NamedTuple):
    """A kernel that QEMU starts. modules: the folder of its modules' files."""

    release: str
    image: Path
    busybox: Path
    modules: Path


def kernel() -> Kernel:
    """Return the newest kernel of the Debian release that this machine runs, made if it is not there yet.

    Fetches about 225 MB and keeps about 15, outside of the tree. Raises MissingError, with what apt or make said.
    """
    missing = [package for command, package in NEEDED.items() if shutil.which(command) is None]
    if missing:
        raise MissingError(f"building a kernel module needs Debian packages: apt-get install {' '.join(missing)}")
    image = _depends("linux-image-amd64", "linux-image-")[0]
    release = image.removeprefix("linux-image-")
    recipe = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:8]  # made anew when this file changes
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jetsel/kernel"
    folder = cache / f"{release}-{recipe}"
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            _make(Path(scratch), image, release).rename(folder)
    return Kernel(release, folder / "vmlinuz", folder / "busybox", folder / "modules")


def _make(scratch: Path, image: str, release: str) -> Path:
    headers = f"linux-headers-{release}"
    series = ".".join(release.split(".")[:2])
    source = f"linux-source-{series}"
    build = [headers, *_depends(headers, "linux-headers-"), *_depends(headers, "linux-kbuild-")]
    _run("apt-get", "download", image, source, "busybox-static", *build, cwd=scratch)
    root = scratch / "root"
    root.mkdir()
    _unpack(scratch, image, root, KEPT)
    for package in ("busybox-static", *build):
        _unpack(scratch, package, root, ("*",))
    found = _sources(scratch, source)
    built = _build(scratch / "build", root / "usr/src" / headers, found)

    folder = scratch / "made"
    (folder / "modules").mkdir(parents=True)
    for module in [*root.glob("lib/modules/*/kernel/**/*.ko"), *built]:
        shutil.copy(module, folder / "modules")
    shutil.copy(root / f"boot/vmlinuz-{release}", folder / "vmlinuz")
    shutil.copy(root / "bin/busybox", folder / "busybox")
    return folder


def _sources(scratch: Path, package: str) -> dict[str, str]:
    """Return the text of each module that is built; the tar file is read only until its drivers were seen."""
    (archive,) = scratch.glob(f"{package}_*.deb")
    wanted = [f"{package}/drivers/hwmon/{driver}.c" for driver in DRIVERS]
    pipe = (
        f'dpkg-deb --fsys-tarfile "{archive}" | tar -xO ./usr/src/{package}.tar.xz | xz -dc -T0 '
        f'| tar -x -C "{scratch}" --occurrence=1 {" ".join(wanted)}'
    )
    _run("sh", "-c", pipe)
    return {driver: (scratch / path).read_text() for driver, path in zip(DRIVERS, wanted, strict=True)}


def _build(folder: Path, headers: Path, sources: dict[str, str]) -> list[Path]:
    folder.mkdir()
    for name, text in sources.items():
        (folder / f"{name}.c").write_text(text)
    (folder / "Makefile").write_text("obj-m := " + " ".join(f"{name}.o" for name in sources))
    makefile = headers / "Makefile"  # it names the folder that the package would be installed in
    makefile.write_text(makefile.read_text().replace("include /usr/src", f"include {headers.parent}"))
    _run("make", "-C", str(headers), f"M={folder}", f"-j{os.cpu_count()}", "modules", cwd=folder)
    return [folder / f"{name}.ko" for name in sources]


def _depends(package: str, beginning: str) -> list[str]:
    """Return the packages with this beginning that a package depends on."""
    told = _run("apt-cache", "depends", package)
    found = re.findall(rf"^ *Depends: ({re.escape(beginning)}\S+)$", told, re.M)
    if not found:
        raise MissingError(f"apt knows no {package} (Debian, amd64): run apt-get update")
    return found


def _unpack(scratch: Path, package: str, root: Path, patterns: Sequence[str]) -> None:
    (archive,) = scratch.glob(f"{package}_*.deb")
    only = " ".join(f"'./{pattern}'" for pattern in patterns)
    _run("sh", "-c", f'dpkg-deb --fsys-tarfile "{archive}" | tar -x -C "{root}" --wildcards {only}')


def _run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise MissingError(f"{' '.join(command)} failed ({done.returncode}): {done.stderr.strip()[-2000:]}")
    return done.stdout
