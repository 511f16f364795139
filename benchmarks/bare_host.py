"""The least that two processes must do to share a run: what any host adds on this machine, without a protocol.

One copy into memory that both map, one byte that wakes the other process, the run, one byte back. No names, no lengths,
no limits, no checks: nobody could serve with it.
"""

from __future__ import annotations

import mmap
import os
import socket
from pathlib import Path

import numpy as np
import onnxruntime

from jetsel.base.weights import Weights


class BareHost:
    """A forked process that runs one model on one input whenever a byte comes."""

    def __init__(self, weights: Weights, shape: tuple[int, ...]) -> None:
        count = int(np.prod(shape))
        size = 4 * (count + weights.classes)
        self._memory = mmap.mmap(-1, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)  # shared with the child
        numbers = np.frombuffer(self._memory, np.float32)
        self._input = numbers[:count].reshape(shape)
        self._logits = numbers[count : count + weights.classes]
        self._socket, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            self._serve(theirs, weights.path)
        theirs.close()

    def infer(self, batch: np.ndarray) -> np.ndarray:
        """Return the logits of the batch."""
        np.copyto(self._input, batch)
        self._socket.sendall(b"r")
        self._socket.recv(1)
        return self._logits.copy()

    def close(self) -> None:
        """End it."""
        self._socket.close()
        os.waitpid(self._pid, 0)

    def _serve(self, connection: socket.socket, path: Path) -> None:
        try:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
            name = session.get_inputs()[0].name
            while connection.recv(1):
                self._logits[:] = session.run(["logits"], {name: self._input})[0][0]
                connection.sendall(b"r")
        finally:
            os._exit(0)
