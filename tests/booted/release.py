"""Distributions with systemd and a Python that will do, each made once by debootstrap and kept; machines get copies."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from tests.booted.machine import NSPAWN

NEEDED = {"systemd-nspawn": "systemd-container", "debootstrap": "debootstrap", "dpkg-deb": "dpkg"}
PLAIN = "systemd,systemd-sysv,dbus,udev,python3,libstdc++6"


class MissingError(Exception):
    """What this machine lacks, and how to get it."""


class Release(NamedTuple):
    """systemd: its version. python: the newest, which stands at `python_path`, and its libraries under `prefix`."""

    suite: str
    mirror: str
    systemd: int
    packages: str
    python: str
    python_path: str
    prefix: str


# As on a board with JetPack 4: Python 3.6 is the system's, and another one, built from source, stands beside it.
ARCHIVE = "http://archive.ubuntu.com/ubuntu"
KEYRING = f"{ARCHIVE}/pool/main/u/ubuntu-keyring/ubuntu-keyring_2021.03.26_all.deb"
KEYRING_SHA256 = "0d0e7ed6b112f5d03eabf3c7eb01ebdacf9c57714b279e90495cfc58c8c4520f"
SOURCE = f"{ARCHIVE}/pool/main/p/python3.10/python3.10_3.10.12.orig.tar.xz"  # of 22.04, whose system Python it is
SOURCE_SHA256 = "afb74bf19130e7a47d10312c8f5e784f24e0527981eab68e20546cfb865830b8"
# The OpenSSL that Python 3.10 needs came to 18.04 with an update; the gateway's libraries import it.
OPENSSL = f"{ARCHIVE}/pool/main/o/openssl/{{}}_1.1.1-1ubuntu2.1~18.04.23_amd64.deb"
OPENSSL_SHA256 = {
    "libssl1.1": "986727f5a99088bef98971edfcd9567f5693b5e941aa241894fce1020c7015a0",
    "libssl-dev": "a9b6e93d93e33206836b30630ae8ad720b15bece3da8275184f076e7e97d4b2f",
}
BESIDE = "/opt/python3.10"
BUILD = f"""
set -e
dpkg --install /usr/src/*.deb
cd /usr/src/python
./configure --quiet --prefix={BESIDE} --disable-test-modules --without-ensurepip
make --jobs="$(nproc)"
make altinstall
ln -s {BESIDE}/bin/python3.10 /usr/local/bin/
"""
TO_BUILD = "setpriv,gcc,make,libc6-dev,zlib1g-dev,libffi-dev,libsqlite3-dev"

DEBIAN_12 = Release("bookworm", "http://deb.debian.org/debian", 252, PLAIN, "3.11", "usr/bin/python3.11", "/usr")
UBUNTU_18 = Release("bionic", ARCHIVE, 237, f"{PLAIN},{TO_BUILD}", "3.10", "usr/local/bin/python3.10", BESIDE)
RELEASES = {release.suite: release for release in (DEBIAN_12, UBUNTU_18)}


def base(release: Release = DEBIAN_12, architecture: str | None = None) -> Path:
    """Return a folder with the release, made where it is not there: of Debian, 90 MB are fetched and 320 MB kept.

    It lies outside of the tree, so that `make clean` does not download it again. architecture: None for this machine's;
    another one's programs must run here. Raises MissingError, with what is missing or what failed.
    """
    lacks = [package for command, package in NEEDED.items() if shutil.which(command) is None]
    if os.geteuid() != 0 or lacks:
        raise MissingError(f"a container is booted as root, and needs: apt-get install {' '.join(NEEDED.values())}")
    recipe = hashlib.sha256(f"{release} {BUILD}".encode()).hexdigest()[:8]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "jetsel/booted"
    made = cache / "-".join((release.suite, *filter(None, (architecture,)), recipe))
    if made.exists():
        return made
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        root = Path(scratch) / "root"
        options = [f"--include={release.packages}"] + ([] if architecture is None else [f"--arch={architecture}"])
        if release is UBUNTU_18:
            package = _fetched(KEYRING, KEYRING_SHA256, Path(scratch, "keyring.deb"))
            _run("dpkg-deb", "--extract", str(package), f"{scratch}/keyring")
            keys = f"{scratch}/keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg"
            options += [f"--keyring={keys}", "--components=main,universe"]
        _run("debootstrap", "--variant=minbase", *options, release.suite, str(root), release.mirror)
        if release is UBUNTU_18:
            source = root / "usr/src/python"
            source.mkdir(parents=True)
            fetched = _fetched(SOURCE, SOURCE_SHA256, Path(scratch, "python.tar.xz"))
            for name, sha256 in OPENSSL_SHA256.items():
                _fetched(OPENSSL.format(name), sha256, root / "usr/src" / f"{name}.deb")
            _run("tar", "--extract", "--file", str(fetched), "--strip-components=1", "-C", str(source))
            _run(*NSPAWN, "--timezone=off", "--pipe", "-D", str(root), "sh", "-c", BUILD)
            _run("rm", "-rf", str(source))
        root.rename(made)
    return made


def copy(folder: Path, release: Release = DEBIAN_12, architecture: str | None = None) -> Path:
    """Return a copy of the release at a folder that is not there yet."""
    _run("cp", "-a", "--reflink=auto", str(base(release, architecture)), str(folder))
    return folder


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        raise MissingError(f"{' '.join(command)} failed ({done.returncode}): {(done.stdout + done.stderr)[-2000:]}")


def _fetched(url: str, sha256: str, path: Path) -> Path:
    try:
        with urllib.request.urlopen(url, timeout=60) as reply:
            path.write_bytes(reply.read())
    except OSError as error:
        raise MissingError(f"{url}: {error}") from None
    if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != sha256:
        raise MissingError(f"{url} is not what it was: its sha256 is {found}")
    return path
