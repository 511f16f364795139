"""One model of the starter family and cheaper networks made of it: what they learn from, and a row for each."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibration.measures import mean_interval
from calibration.optimizing.beside import tell
from calibration.starter.calibrate import LIMITS
from jetsel.image import InputSpec
from jetsel.train.images import normalised, read_pixels
from jetsel.train.optimize.activations import count_operations
from jetsel.train.optimize.compress import with_fixed_size
from jetsel.train.optimize.distil import DistillationPlan, distil
from jetsel.train.optimize.steps import export_atomically, to_torch
from jetsel.zoo import STARTER, scan
from jetsel.zoo.onnx_model import read_model

SEED = 2018
TIMED = 200  # by turns; of these the tenth percentile counts, which other work disturbs least
COLUMNS = "million operations | epochs | top-1 % | beside `{}`, points | agrees % | time, of `{}`'s | MB"


@dataclass
class Trial:
    """A model of the starter family, and the cheaper networks that were made of it.

    shown: (n, 3, height, width) test images as the model takes them; truth: (n,) their classes.
    """

    name: str
    lesson: DistillationPlan
    shown: NDArray[np.float32]
    truth: NDArray[np.int64]
    work: Path
    _files: dict[str, Path] = field(default_factory=dict)
    _cells: dict[str, str] = field(default_factory=dict)
    _answers: dict[str, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def example(self) -> Tensor:
        """An input for counting operations."""
        return torch.zeros(2, 3, self.lesson.spec.height_px, self.lesson.spec.width_px)

    def network(self) -> nn.Module:
        """Return the model as a network of its own."""
        return _network(self.name)[0]

    def add(self, title: str, net: nn.Module, epochs: str) -> None:
        """Export a network and let it answer the test images; epochs: the cell that says how it was trained."""
        self._files[title] = self.work / f"{title}.onnx"
        self._cells[title] = f"{count_operations(net, self.example) / 1e6:.0f} | {epochs}"
        export_atomically(net, self.lesson, self._files[title])
        session = _session(self._files[title])
        self._answers[title] = np.array([_logits(session, one[None])[0].argmax() for one in self.shown])

    def tune(self, title: str, net: nn.Module) -> None:
        """Fine-tune a network towards the model's answers, from its checkpoint if there is one, and add it."""
        done = distil(net, self.lesson, self.work / f"{title}.pt", tell)
        self.add(title, net, f"{done.epochs} in {done.seconds / 60:.1f} min")

    def rows(self) -> list[str]:
        """Return a row for each network, timed by turns, the model itself first."""
        sessions = {title: _session(path) for title, path in self._files.items()}
        taken: dict[str, list[float]] = {title: [] for title in sessions}
        for row in range(TIMED):
            for title, session in sessions.items():
                began = time.perf_counter()
                _logits(session, self.shown[row : row + 1])
                taken[title].append(time.perf_counter() - began)
        first, *_ = sessions
        return [self._row(title, first, _fast(taken[title]) / _fast(taken[first])) for title in sessions]

    def _row(self, title: str, first: str, ratio: float) -> str:
        right = self._answers[title] == self.truth
        gain = 100 * (right.astype(float) - (self._answers[first] == self.truth))
        interval = mean_interval(gain)
        beside = f"{gain.mean():+.1f} ({interval.low:+.1f} to {interval.high:+.1f}) | "
        beside += f"{100 * (self._answers[title] == self._answers[first]).mean():.1f}"
        numbers = f"{ratio:.2f} | {self._files[title].stat().st_size / 1e6:.2f}"
        cells = f"{self._cells[title]} | {100 * right.mean():.2f}"
        return f"{title} | {cells} | {beside if title != first else ' | '} | {numbers}"


def add_arguments(parser: argparse.ArgumentParser, work: str) -> None:
    """Add what every trial needs to be told; work: the default folder of what is done."""
    parser.add_argument("learn", type=Path, help="images to fine-tune on; their labels are not read")
    parser.add_argument("test", type=Path, help="images to judge on")
    parser.add_argument("--images", type=int, default=42_000, help="of LEARN at most, drawn once (%(default)s)")
    parser.add_argument("--epochs", type=int, default=8, help="epochs of fine-tuning (%(default)s)")
    parser.add_argument("--most-s", type=float, default=1200.0, help="seconds of fine-tuning at most (%(default)g)")
    parser.add_argument("--work", type=Path, default=Path(work), help="what is done (%(default)s)")


def trial(name: str, options: argparse.Namespace) -> Trial:
    """Return the trial of a model of the starter family, itself added; options: see `add_arguments`."""
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the same weights each time
    family = scan([STARTER]).families["starter"]
    whole, spec = _network(name)
    paths = sorted(path for path in options.test.glob("*/*") if path.is_file())
    levels, rows = read_pixels(paths, spec, LIMITS, family.decode_px, tell)
    numbers = {wnid: number for number, wnid in enumerate(family.labels.wnids)}
    truth = np.array([numbers[paths[row].parent.name] for row in rows])
    learn = sorted(path for path in options.learn.glob("*/*") if path.is_file())
    learn = [learn[row] for row in np.random.default_rng(SEED).permutation(len(learn))[: options.images]]
    learned, _ = read_pixels(learn, spec, LIMITS, family.decode_px, tell)
    lesson = DistillationPlan(learned, spec, _network(name)[0], options.epochs, options.most_s, SEED)
    found = Trial(name, lesson, normalised(levels, spec), truth, options.work)
    found.add(f"`{name}`", whole, "")
    return found


def _network(name: str) -> tuple[nn.Module, InputSpec]:
    model = next(model for model in scan([STARTER]).families["starter"].models if model.manifest.name == name)
    spec = model.manifest.input
    return to_torch(with_fixed_size(read_model(model.path), spec.height_px, spec.width_px), name), spec


def _session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def _fast(taken: list[float]) -> float:
    return statistics.quantiles(taken, n=10)[0]


def _logits(session: onnxruntime.InferenceSession, shown: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = session.run(["logits"], {session.get_inputs()[0].name: shown})[0]
    return found
