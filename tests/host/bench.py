"""What the tests of the host share: a real host process, over a double of TensorRT or not, and small ONNX files."""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jetsel.engines.hosting.process import HostProcess, HostStart, LinkBrokenError
from tests.contract.tiny import HEIGHT_PX, PIXELS, WIDTH_PX
from tests.doubles.interpreter import make_interpreter

LIMIT_S = 60.0
SIZE_BYTES = 1 << 16


class Bench:
    """One host process; `board` is its simulated board, which can be changed while it runs."""

    def __init__(self, interpreter: str | Path, folder: Path, backend: str = "tensorrt") -> None:
        self.folder = folder
        self.process = HostProcess(HostStart(str(interpreter), backend, hello_s=LIMIT_S))
        self.region = self.process.memory.allocate(SIZE_BYTES)
        self.widths: dict[int, dict[str, int]] = {}  # of each model's outputs
        self.ends = "exit status 0"  # how it has to end

    def set_board(self, board: Mapping[str, Any]) -> None:
        """Change the board, faults included."""
        set_board(self.folder, board)

    def build(self, onnx: bytes, *, name: str = "m", **changes: Any) -> dict[str, Any]:
        """Ask for NAME.plan of this ONNX file."""
        (self.folder / f"{name}.onnx").write_bytes(onnx)
        request = {
            "onnx": str(self.folder / f"{name}.onnx"),
            "plan": str(self.folder / f"{name}.plan"),
            "precision": "fp32",
            "is_half": False,
            "max_batch": 4,
            "input_px": [HEIGHT_PX, WIDTH_PX],
            "workspace_bytes": 1 << 26,
            "lean_tactics": False,
            "timing_cache": str(self.folder / "timings"),
        }
        return self.process.exchange("build", {**request, **changes}, LIMIT_S)

    def load(self, key: int = 1, *, name: str = "m", **changes: Any) -> dict[str, Any]:
        """Ask for NAME.plan to be loaded."""
        return self.load_file(self.folder / f"{name}.plan", key, **changes)

    def load_file(self, path: Path, key: int = 1, **changes: Any) -> dict[str, Any]:
        """Ask for a file to be loaded."""
        request = {
            "model": key,
            "name": path.stem,
            "path": str(path),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "classes": 4,
            "input_px": [HEIGHT_PX, WIDTH_PX],
            "threads": 1,
        }
        reply = self.process.exchange("load", {**request, **changes}, LIMIT_S)
        if reply["ok"]:
            self.widths[key] = {"logits": reply["classes"], "embedding": reply["embedding_width"] or 0}
        return reply

    def leave(self, how: str = "exit status 0") -> None:
        """Have it leave, and see how it ended."""
        with contextlib.suppress(LinkBrokenError):
            self.process.exchange("quit", {}, LIMIT_S)
        assert self.process.kill(patience_s=LIMIT_S) == how

    def infer(self, batch: NDArray[np.float32], key: int = 1) -> dict[str, Any]:
        """Ask for one run; return the reply with the arrays that it wrote."""
        self._write(batch)
        middle = SIZE_BYTES // 2
        request = {
            "model": key,
            "input": {"offset": self.region.offset, "shape": list(batch.shape)},
            "output": {"offset": self.region.offset + middle, "bytes": middle},
        }
        reply = self.process.exchange("infer", request, LIMIT_S)
        at = middle // 4
        for role, width in self.widths[key].items() if reply["ok"] else ():
            reply[role] = self.region.view(at, (len(batch), width)).copy()
            at += reply[role].size
        return reply

    def unload(self, key: int) -> dict[str, Any]:
        """Ask for one model to go."""
        return self.process.exchange("unload", {"model": key}, LIMIT_S)

    def _write(self, batch: NDArray[np.float32]) -> None:
        self.region.view(0, batch.shape)[:] = batch


Begin = Callable[..., Bench]


def set_board(folder: Path, board: Mapping[str, Any]) -> Path:
    """Write the board that an interpreter with a double reads, and return its file."""
    new, file = folder / "board.new", folder / "board.json"
    new.write_text(json.dumps(board))
    return new.replace(file)


@contextlib.contextmanager
def benches(folder: Path) -> Iterator[Begin]:
    """Starts hosts: begin(generation, **board). Each has to leave cleanly at the end, its CUDA context too."""
    begun: list[Bench] = []

    def begin(generation: str, **board: Any) -> Bench:
        mine = folder / str(len(begun))
        mine.mkdir()
        begun.append(Bench(make_interpreter(mine / "python", generation, board=set_board(mine, board)), mine))
        return begun[-1]

    yield begin
    for bench in begun:
        bench.leave(bench.ends)


def pixels(*values: float) -> NDArray[np.float32]:
    """Return one image for each value, all of whose pixels have it."""
    return np.stack([np.full((3, HEIGHT_PX, WIDTH_PX), value, np.float32) for value in values])


COUNTING = np.arange(PIXELS * 4, dtype=np.float32).reshape(PIXELS, 4)  # its columns add up to 612, 630, 648 and 666
