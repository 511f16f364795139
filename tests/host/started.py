"""A real engine host under any interpreter, and the peer that speaks to it: in messages, or byte by byte."""

from __future__ import annotations

import json
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

import jetsel
from jetsel.engines.hosting.link import HEADER, Link
from jetsel.engines.hosting.memory import Memory

HOST = Path(jetsel.__file__).parent / "engines" / "host.py"
LIMIT_S = 60.0  # nothing here takes a second; a busy machine may

Array = NDArray[np.float32]


class StartedHost:
    """One process of the host. It has not been spoken to yet."""

    def __init__(self, interpreter: str, backend: str = "onnxruntime") -> None:
        self.memory = Memory()
        self.socket, theirs = socket.socketpair()
        self.link = Link(self.socket)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the rest
        command = [interpreter, "-I", str(HOST), "--backend", backend, "--fd", str(theirs.fileno())]
        with theirs:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self._said,
                stderr=self._said,
                pass_fds=(theirs.fileno(), self.memory.fd),
            )

    def __enter__(self) -> StartedHost:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        self.link.close()
        self.memory.close()
        self._said.close()

    def ask(self, kind: str, **request: Any) -> dict[str, Any]:
        """Send one request and return its reply."""
        return self.link.exchange(kind, {"memory_bytes": self.memory.size, **request}, LIMIT_S)

    def hello(self, reserve_bytes: int = 0, **changes: Any) -> dict[str, Any]:
        """Say hello and return its reply."""
        return self.ask("hello", **{"memory_fd": self.memory.fd, "reserve_bytes": reserve_bytes, **changes})

    def infer(self, model: int, batch: Array, output_bytes: int = 4096) -> tuple[Array, Array | None]:
        """Run a model; return copies of its logits and of its embedding."""
        region = self.memory.take(batch.nbytes + output_bytes)
        region.view(region.offset, batch.shape)[:] = batch
        place = {"offset": region.offset, "shape": batch.shape}
        output = {"offset": region.offset + batch.nbytes, "bytes": output_bytes}
        reply = self.ask("infer", model=model, input=place, output=output)
        assert reply["ok"], reply
        assert reply["wall_ms"] > 0
        written = [reply["logits"], reply["embedding"]]
        logits, embedding = (at and region.view(at["offset"], tuple(at["shape"])).copy() for at in written)
        self.memory.give_back(region)
        return logits, embedding

    def send_raw(self, content: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(content)

    def send_body(self, body: bytes) -> None:
        """Send a message whose length is right, whatever its content."""
        self.send_raw(HEADER.pack(len(body)) + body)

    def receive(self) -> dict[str, Any]:
        """Return the next message that the host sends."""
        self.socket.settimeout(LIMIT_S)
        (length,) = HEADER.unpack(self.socket.recv(HEADER.size, socket.MSG_WAITALL))
        message: dict[str, Any] = json.loads(self.socket.recv(length, socket.MSG_WAITALL))
        return message

    def hang_up(self) -> None:
        """Close our end of the socket."""
        self.link.close()

    def ended(self) -> tuple[int, str]:
        """Wait until it has ended by itself; return its exit status and all that it printed."""
        status = self.process.wait(LIMIT_S)
        self._said.seek(0)
        return status, self._said.read().decode()
