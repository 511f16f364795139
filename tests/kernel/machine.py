"""A QEMU machine that runs the kernel and our Python once, and gives back what they saw."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kernel.debian import Kernel

PROJECT = Path(__file__).parents[2]
SHARE = "host"  # the tag of the host's files
LIMIT_S = 1200.0  # half a minute on a quiet machine

# Emulated, not KVM: it starts in ten seconds, and where /dev/kvm is itself virtual an ordinary kernel may hang in it.
QEMU = (
    *("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1024"),
    *("-nodefaults", "-no-reboot", "-display", "none"),
    *("-virtfs", f"local,path=/,mount_tag={SHARE},security_model=none,readonly=on,multidevs=remap"),
    *("-device", "virtio-serial-pci", "-device", "virtserialport,chardev=told"),
)
COMMAND_LINE = "console=ttyS0 quiet panic=-1"


def run(kernel: Kernel, folder: Path) -> dict[str, Any]:
    """Start the machine, which sees the host's files read only, wait for its end, and return what it told."""
    archive, told, console = folder / "initramfs", folder / "told", folder / "console"
    archive.write_bytes(initramfs(kernel))
    command = [
        *QEMU,
        *("-kernel", str(kernel.image), "-initrd", str(archive), "-append", COMMAND_LINE),
        *("-serial", f"file:{console}", "-chardev", f"file,id=told,path={told}"),
    ]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)
    said = told.read_text() if told.exists() else ""
    assert said, f"the machine told nothing: {done.stderr[-4000:]} {console.read_text(errors='replace')[-4000:]}"
    return dict(json.loads(said))


FOLDER, PROGRAM = 0o040755, 0o100755
FOLDERS = ("bin", "dev", "proc", "sys", "host", "lib", "lib/modules")

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/run",
    "TMPDIR": "/run",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONPATH": str(PROJECT),
}

# The host's files are read only; what is written goes to /run, which is memory. The busybox and the modules are kept
# there for later, since the guest's own root is out of reach after chroot.
INIT = """#!/bin/busybox sh
set -e
/bin/busybox --install -s /bin
mount -t devtmpfs none /dev
mount -t proc none /proc
mount -t sysfs none /sys
depmod
modprobe -a virtio_pci virtio_console 9pnet_virtio 9p i2c-dev
modprobe i2c-stub chip_addr=0x40,0x44  # where the stub has chips
modprobe vivid n_devs=1 node_types=0x1  # a camera that sees a test picture
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 {share} /host
for there in dev proc sys; do mount --move /$there /host/$there; done
mount -t tmpfs none /host/run
cp /bin/busybox /host/run
cp -r /lib/modules/{release} /host/run/modules
exec chroot /host /run/busybox env -i {environment} {python} -m tests.kernel.inside
"""


def initramfs(kernel: Kernel) -> bytes:
    """Return the archive, uncompressed, in the format newc (kernel document: early-userspace/buffer-format)."""
    modules = f"lib/modules/{kernel.release}"
    init = INIT.format(
        release=kernel.release,
        share=SHARE,
        environment=" ".join(f"{name}={shlex.quote(value)}" for name, value in ENVIRONMENT.items()),
        python=shlex.quote(sys.executable),
    )
    entries = [_entry(name, FOLDER, b"") for name in (*FOLDERS, modules)]
    entries += [_entry(f"{modules}/{file.name}", PROGRAM, file.read_bytes()) for file in kernel.modules.iterdir()]
    entries += [_entry("bin/busybox", PROGRAM, kernel.busybox.read_bytes()), _entry("init", PROGRAM, init.encode())]
    return b"".join([*entries, _entry("TRAILER!!!", 0, b"")])


def _entry(name: str, mode: int, content: bytes) -> bytes:
    """One file: a header of 13 numbers in hexadecimal, its name and its content, each filled up to 4 bytes."""
    title = name.encode() + b"\0"
    #         inode, mode, owner, group, links, time, size, device major and minor, its own as a device, name, checksum
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(title), 0)
    header = b"070701" + b"".join(b"%08X" % number for number in numbers) + title
    return _filled(header) + _filled(content)


def _filled(part: bytes) -> bytes:
    return part + bytes(-len(part) % 4)
