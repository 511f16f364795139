"""A QEMU machine that runs the kernel and our Python, and does what a test asks of it."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.kernel.debian import Kernel
from tests.kernel.initramfs import SHARE, initramfs
from tests.kernel.inside import OFF

START_S, CALL_S, STOP_S = 180.0, 120.0, 30.0

# Emulated, not KVM: it starts in ten seconds, and where /dev/kvm is itself virtual an ordinary kernel may hang in it.
QEMU = (
    *("qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "1024"),
    *("-nodefaults", "-no-reboot", "-display", "none"),
    *("-virtfs", f"local,path=/,mount_tag={SHARE},security_model=none,readonly=on,multidevs=remap"),
    *("-device", "virtio-serial-pci", "-chardev", "stdio,id=talk,signal=off"),
    *("-device", "virtserialport,chardev=talk"),
)
COMMAND_LINE = "console=ttyS0 quiet panic=-1"


class Machine:
    """The machine while it runs; `with` starts it and switches it off. It sees the host's files, read only."""

    def __init__(self, kernel: Kernel, folder: Path) -> None:
        self._console = folder / "console"
        self._complaints = folder / "qemu"
        archive = folder / "initramfs"
        archive.write_bytes(initramfs(kernel))
        self._command = [
            *QEMU,
            *("-kernel", str(kernel.image), "-initrd", str(archive), "-append", COMMAND_LINE),
            *("-serial", f"file:{self._console}"),
        ]

    def __enter__(self) -> Machine:
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, bufsize=0
            )
        self._unread = b""
        try:
            self._answer(START_S)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._say(OFF)
            self._process.wait(STOP_S)
        except (OSError, subprocess.TimeoutExpired):
            pass  # it is gone already, or hangs
        finally:
            self._end()

    def call(self, name: str, *arguments: Any) -> Any:
        """Have `tests.kernel.inside` do something; returns what it returned, raises the OSError that it met."""
        self._say(name, *arguments)
        answer = self._answer(CALL_S)
        if "errno" in answer:
            raise OSError(answer["errno"], os.strerror(answer["errno"]), answer["of"])
        return answer["value"]

    def said(self) -> str:
        """Return what QEMU and the kernel printed so far, the end of it."""
        there = [file for file in (self._complaints, self._console) if file.exists()]
        return "".join(file.read_text(errors="replace")[-4000:] for file in there)

    def _say(self, name: str, *arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]).encode() + b"\n")

    def _answer(self, limit_s: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        until = time.monotonic() + limit_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                came = selector.select(until - time.monotonic()) and os.read(self._process.stdout.fileno(), 1 << 16)
                if not came:
                    why = f"said nothing in {limit_s:g} s" if came == [] else "ended"
                    raise AssertionError(f"the machine {why}; its console: {self.said()}")
                self._unread += came
        line, _, self._unread = self._unread.partition(b"\n")
        return dict(json.loads(line))

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
