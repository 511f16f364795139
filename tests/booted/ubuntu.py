"""What Ubuntu 18.04 needs beside debootstrap: the keys that sign it, and a Python from source beside its own 3.6."""

from __future__ import annotations

import hashlib
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

ARCHIVE = "http://archive.ubuntu.com/ubuntu/pool/main"
KEYRING = f"{ARCHIVE}/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb"
KEYRING_SHA256 = "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f"
SOURCE = f"{ARCHIVE}/p/python3.10/python3.10_3.10.12.orig.tar.xz"  # of 22.04, whose system Python it is
SOURCE_SHA256 = "afb74bf19130e7a47d10312c8f5e784f24e0527981eab68e20546cfb865830b8"
PYTHON, PREFIX = "3.10", "/opt/python3.10"
ON_THE_PATH = f"usr/local/bin/python{PYTHON}"
TO_BUILD = "gcc,make,libc6-dev,zlib1g-dev,libffi-dev,libsqlite3-dev"
RECIPE = f"{SOURCE_SHA256} {PREFIX}"
FETCH_S = 60.0

BUILD = f"""
set -e
cd /usr/src/python
./configure --quiet --prefix={PREFIX} --disable-test-modules --without-ensurepip
make --jobs="$(nproc)"
make altinstall
"""


def keyring(folder: Path) -> Path:
    """Fetch the keys into a folder; raises OSError where they do not come, or are others."""
    package = _fetched(KEYRING, KEYRING_SHA256, folder / "keyring.deb")
    subprocess.run(("dpkg-deb", "--extract", str(package), str(folder / "keyring")), check=True)
    return folder / "keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg"


def add_python(root: Path, run: Callable[..., None]) -> None:
    """Build it in the release, where it is found on the path; raises OSError where its source does not come."""
    source = root / "usr/src/python"
    source.mkdir(parents=True)
    fetched = _fetched(SOURCE, SOURCE_SHA256, root / "usr/src/python.tar.xz")
    run("tar", "--extract", "--file", str(fetched), "--strip-components=1", "-C", str(source))
    nspawn = ("systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--quiet", "--timezone=off")
    run(*nspawn, "--pipe", "-D", str(root), "sh", "-c", BUILD)
    subprocess.run(("rm", "-rf", str(root / "usr/src")), check=True)
    (root / "usr/src").mkdir()
    (root / ON_THE_PATH).symlink_to(f"{PREFIX}/bin/python{PYTHON}")


def _fetched(url: str, sha256: str, path: Path) -> Path:
    with urllib.request.urlopen(url, timeout=FETCH_S) as reply:
        content = reply.read()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise OSError(f"{url} is not what it was: its sha256 is {hashlib.sha256(content).hexdigest()}")
    path.write_bytes(content)
    return path
