"""Separable convolutions and SVD on a real model: `python -m calibration.papers.factorised LEARN TEST`.

The starter family's `l` is factorised as in the thesis's sections 2.4.1 and 2.6.1, fine-tuned towards `l`'s answers on
LEARN as calibration.optimizing does, and judged on TEST: folders with a folder for each class. Epochs that are done
are kept in --work, so that the same command continues. Writes results/thesis-factorised.md. Needs pip install
'jetsel[export]'.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import nn

from calibration.optimizing.beside import tell
from calibration.optimizing.separable import separable
from calibration.papers.tables import table, written
from calibration.starter.calibrate import LIMITS
from jetsel.calibrate.judge.metrics import mean_interval
from jetsel.train.optimize.activations import operations
from jetsel.train.optimize.distil import Lesson, Progress, distil
from jetsel.train.optimize.factorise import low_rank, one_d
from jetsel.train.optimize.material import normalised, pixels
from jetsel.train.optimize.steps import network_of, write
from jetsel.zoo import STARTER, scan
from jetsel.zoo.graph import for_size
from jetsel.zoo.onnx_model import read_model

PARENT = "l"
SHARE = 0.7  # of the multiply-accumulates of each layer that is changed
SEED = 2018
TIMED = 200  # by turns; of these the tenth percentile counts, which other work disturbs least


def kernels(net: nn.Module, share: float) -> int:
    """Make an N x N convolution with P channels out and a 1 x 1 one of each N x N convolution, by its singular values.

    Section 2.6.1 with the kernel as the matrix of L rows and N^2 K columns, which a convolution multiplies by each
    place: P = share x N^2 KL / (N^2 K + L). Return how many layers were replaced.
    """
    count = 0
    for name, layer in list(net.named_modules()):
        if not isinstance(layer, nn.Conv2d) or max(layer.kernel_size) == 1:
            continue
        weight = layer.weight.detach()
        wide_out, rest = len(weight), weight[0].numel()
        between = min(int(share * rest * wide_out / (rest + wide_out)), wide_out)
        left, values, right = torch.linalg.svd(weight.reshape(wide_out, rest), full_matrices=False)
        roots = values[:between].sqrt()
        first = nn.Conv2d(
            layer.in_channels,
            between,
            layer.kernel_size,
            layer.stride,
            layer.padding,
            bias=False,  # type: ignore[arg-type]
        )
        second = nn.Conv2d(between, wide_out, 1)
        with torch.no_grad():
            first.weight.copy_((roots[:, None] * right[:between]).reshape(first.weight.shape))
            second.weight.copy_((left[:, :between] * roots)[..., None, None])
            assert second.bias is not None
            second.bias.copy_(torch.zeros(wide_out) if layer.bias is None else layer.bias.detach())
        net.set_submodule(name, nn.Sequential(first, second))
        count += 1
    return count


METHODS: dict[str, tuple[Callable[[nn.Module, float], int], bool]] = {
    "1 x N and N x 1": (one_d, False),
    "SVD of the dense layer and the 1 x 1 convolutions": (low_rank, False),
    "separable convolutions": (separable, True),
    "SVD of each 3 x 3 kernel": (kernels, True),
}
"""Each with whether it is fine-tuned: calibration.starter.optimize tunes 1 x N; SVD of dense layers saves 1 %."""


def main() -> None:
    """Factorise, fine-tune, judge, and write the table after each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learn", type=Path, help="images to fine-tune on; their labels are not read")
    parser.add_argument("test", type=Path, help="images to judge on")
    parser.add_argument("--images", type=int, default=42_000, help="of LEARN at most, drawn once (%(default)s)")
    parser.add_argument("--epochs", type=int, default=8, help="epochs of fine-tuning (%(default)s)")
    parser.add_argument("--most-s", type=float, default=1200.0, help="seconds of fine-tuning at most (%(default)g)")
    parser.add_argument("--work", type=Path, default=Path("build/factorised"), help="what is done (%(default)s)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    family = scan([STARTER]).families["starter"]
    model = next(model for model in family.models if model.manifest.name == PARENT)
    spec = model.manifest.input
    graph = for_size(read_model(model.path), spec.height_px, spec.width_px)
    paths = sorted(path for path in options.test.glob("*/*") if path.is_file())
    levels, rows = pixels(paths, spec, LIMITS, family.decode_px, tell)
    numbers = {wnid: number for number, wnid in enumerate(family.labels.wnids)}
    truth = np.array([numbers[paths[row].parent.name] for row in rows])
    shown, example = normalised(levels, spec), torch.zeros(2, 3, spec.height_px, spec.width_px)
    learn = sorted(path for path in options.learn.glob("*/*") if path.is_file())
    learn = [learn[row] for row in np.random.default_rng(SEED).permutation(len(learn))[: options.images]]
    learned, _ = pixels(learn, spec, LIMITS, family.decode_px, tell)
    lesson = Lesson(learned, spec, network_of(graph, PARENT), options.epochs, options.most_s, SEED)

    whole = network_of(graph, PARENT)
    files = {f"`{PARENT}`": options.work / "parent.onnx"}
    left = {f"`{PARENT}`": operations(whole, example)}
    words = {f"`{PARENT}`": ""}
    answers: dict[str, NDArray[np.int64]] = {}  # of those that were judged
    write(whole, lesson, files[f"`{PARENT}`"])
    for name, (change, is_tuned) in METHODS.items():
        net = network_of(graph, PARENT)
        change(net, SHARE)
        for title, is_now_tuned in ((name, False), (f"{name}, fine-tuned", True))[: 1 + is_tuned]:
            files[title] = options.work / f"{title}.onnx"
            left[title] = operations(net, example)
            words[title] = "0"
            if is_now_tuned:
                done: Progress = distil(net, lesson, options.work / f"{title}.pt", tell)
                words[title] = f"{done.epochs} in {done.seconds / 60:.1f} min"
            write(net, lesson, files[title])
        text = table(
            f"`{PARENT}`, factorised; {len(truth)} test images, fine-tuned on {len(learned)}",
            "method | million operations | epochs | top-1 % | beside `l`, points | agrees % | time, of `l`'s | MB",
            _rows(files, left, words, answers, shown, truth),
        )
        written("thesis-factorised", text)


def _rows(
    files: dict[str, Path],
    left: dict[str, int],
    words: dict[str, str],
    answers: dict[str, NDArray[np.int64]],
    shown: NDArray[np.float32],
    truth: NDArray[np.int64],
) -> list[str]:
    sessions = {}
    for title, path in files.items():
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        sessions[title] = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        if title not in answers:
            answers[title] = np.array([_logits(sessions[title], one[None])[0].argmax() for one in shown])
    taken: dict[str, list[float]] = {title: [] for title in files}
    for row in range(TIMED):
        for title, session in sessions.items():
            began = time.perf_counter()
            _logits(session, shown[row : row + 1])
            taken[title].append(time.perf_counter() - began)
    first, *_ = files
    rows = []
    for title, path in files.items():
        right = (answers[title] == truth).astype(float)
        gain = 100 * (right - (answers[first] == truth))
        interval = mean_interval(gain)
        beside = f"{gain.mean():+.1f} ({interval.low:+.1f} to {interval.high:+.1f}) | "
        beside += f"{100 * (answers[title] == answers[first]).mean():.1f}"
        ratio = statistics.quantiles(taken[title], n=10)[0] / statistics.quantiles(taken[first], n=10)[0]
        numbers = f"{ratio:.2f} | {path.stat().st_size / 1e6:.2f}"
        cells = f"{left[title] / 1e6:.0f} | {words[title]} | {100 * right.mean():.2f}"
        rows.append(f"{title} | {cells} | {beside if title != first else ' | '} | {numbers}")
    return rows


def _logits(session: onnxruntime.InferenceSession, shown: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = session.run(["logits"], {session.get_inputs()[0].name: shown})[0]
    return found


if __name__ == "__main__":
    main()
