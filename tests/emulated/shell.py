"""Commands in a tree of files of another architecture, which is not booted."""

from __future__ import annotations

import subprocess
from pathlib import Path

CALL_S = 600.0
NSPAWN = ("systemd-nspawn", "--register=no", "--keep-unit", "--private-network", "--quiet", "--as-pid2", "--pipe")

# QEMU's user emulation shows programs the processor that it runs on, and ONNX Runtime's library cpuinfo, which reads
# what an arm64 processor has there, then ends the process. So they are shown a TX2's Cortex-A57.
CPUINFO = "/proc/cpuinfo"
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


class Shell:
    """Each command has namespaces of its own, and no network."""

    def __init__(self, root: Path, processors: int = 2) -> None:
        self.root = root
        text = "".join(PROCESSOR.format(number=number) for number in range(processors))
        (root / SHOWN.lstrip("/")).write_text(text)

    def run(self, *command: str, timeout_s: float = CALL_S) -> str:
        """Run a command that must succeed; return what it printed."""
        shown = ("sh", "-c", f'mount --bind {SHOWN} {CPUINFO} && exec "$@"', "sh")
        done = subprocess.run(
            (*NSPAWN, "-D", str(self.root), *shown, *command), capture_output=True, text=True, timeout=timeout_s
        )
        told = f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
        assert done.returncode == 0, told
        return done.stdout
