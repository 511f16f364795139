"""The arm64 package in a Debian whose programs QEMU runs one by one: its wheels load, and the daemon serves."""

import json
import platform
import subprocess
from pathlib import Path

import pytest

from tests.booted.machine import NSPAWN
from tests.booted.package import PICTURE, built, hang_pictures, put
from tests.booted.release import MissingError, copy

REGISTERED = Path("/proc/sys/fs/binfmt_misc/qemu-aarch64")
JETSEL = "/opt/jetsel/venv/bin/jetsel"
ENDPOINT = "ipc:///tmp/jetsel.sock"
READY_S = 300  # emulated, it takes some 45 times as long

# QEMU's user emulation shows programs the processor that it runs on, and ONNX Runtime's library cpuinfo, which reads
# what an arm64 processor has there, then ends the process. So they are shown a TX2's Cortex-A57.
PROCESSOR = """processor\t: {number}
BogoMIPS\t: 62.50
Features\t: fp asimd evtstrm aes pmull sha1 sha2 crc32
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd07
CPU revision\t: 3

"""
SHOWN = "/root/cpuinfo"

LIFE = f"""
set -eu
cd /tmp
printf '[server]\\nendpoint = "{ENDPOINT}"\\n' >jetsel.toml
setpriv --reuid=jetsel --regid=jetsel --init-groups {JETSEL} serve --config jetsel.toml 2>log &
daemon=$!
begun=$(date +%s)
until grep -q ' ready on ' log; do
    kill -0 $daemon || {{ cat log >&2; exit 1; }}
    [ $(($(date +%s) - begun)) -lt {READY_S} ] || {{ cat log >&2; exit 1; }}
    sleep 1
done
{JETSEL} classify --json --endpoint {ENDPOINT} --timeout-ms 60000 {PICTURE}
{JETSEL} reload --endpoint {ENDPOINT} --timeout-ms 120000 >&2
kill -TERM $daemon
wait $daemon
"""


def test_the_package_for_arm64_installs_finds_its_libraries_and_serves(tmp_path: Path) -> None:
    package = built("arm64")
    if package is None:
        pytest.skip("there is no arm64 package of this version in dist/: run make ARCH=arm64 DEB_PYTHONS=3.11 deb")
    if platform.machine() != "aarch64" and not REGISTERED.exists():
        pytest.skip("arm64 programs do not run here: apt-get install qemu-user-static binfmt-support")
    root = tmp_path / "root"
    try:
        copy(root, architecture="arm64")
    except MissingError as error:
        pytest.skip(str(error))
    try:
        (root / SHOWN.lstrip("/")).write_text("".join(PROCESSOR.format(number=number) for number in range(2)))
        hang_pictures(root)
        run(root, f"dpkg --force-unsafe-io --install {put(root, package.main)}")
        assert run(root, "uname -m").strip() == "aarch64"
        told = json.loads(run(root, f"{JETSEL} doctor --json || true"))  # no daemon runs, which it says
        found = {check["name"]: check["state"] for check in told if check["section"] == "installation"}
        assert set(found.values()) == {"ok"}, told
        assert json.loads(run(root, LIFE))["label"]
    finally:
        subprocess.run(("rm", "-rf", str(root)), check=True)


def run(root: Path, script: str) -> str:
    """Run a script that must succeed, with namespaces of its own and no network; return what it printed."""
    shown = f"mount --bind {SHOWN} /proc/cpuinfo\n{script}"
    command = (*NSPAWN, "--as-pid2", "--pipe", "-D", str(root), "sh", "-c", shown)
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, f"{script} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout
