"""A QEMU machine that runs the kernel and our Python once, and gives back what they saw."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.kernel.debian import Kernel
from tests.kernel.initramfs import SHARE, initramfs

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
