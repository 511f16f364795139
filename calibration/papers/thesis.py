"""Çallı's thesis beside what we find: `python -m calibration.papers.thesis [--part NAME] [--work DIR]`.

Needs pip install 'jetsel[export,train]'. Writes results/thesis-PART.md; a part that is done is kept in DIR, so that
the same command continues. The digits are scikit-learn's 1,797 handwritten ones, 8 x 8, enlarged to 28 x 28.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calibration.optimizing.rules import Combined, Distorted, Outliers, Regularised, Rule, prune_by
from calibration.papers.counts import counts
from calibration.papers.tables import table, written
from jetsel.calibrate.judge.metrics import share_interval
from jetsel.train.optimize.activations import PrunableNetwork, count_operations
from jetsel.train.optimize.factorise import one_d

SEEDS = (1, 2)
RULES = {
    "plain": Rule(),
    "distorted": Distorted(noise=None),
    "L1": Regularised(),
    "distorted, L1": Distorted(noise=None, l1=1e-5),
}
CODER_RULES = {name: RULES[name] for name in ("plain", "distorted", "L1")} | {"outliers": Outliers()}
ALL_RULES = {"distorted, L1, outliers": Combined(noise=None)}
SAMPLES, BATCH, EPOCHS = 1_000_000, 1_000, 10  # section 2.2.2
CODER_SEEDS, CODER_BATCH = (1, 2, 3), 16
CODER_LEAST, CODER_MOST, CODER_WINDOW = 20_000, 60_000, 2_000
"""Steps: in the first cycle at least, in any at most, and over how many the loss is averaged."""
CODER_FLAT = 0.02  # the loss is flat if one window's mean is less than this share below the last one's
CLASSIFIER_EPOCHS, TUNING_EPOCHS = 12, 4
TIMED = 60


def main() -> None:
    """Print every part, or the one that is named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=sorted(PARTS), help="left out: all")
    parser.add_argument("--work", type=Path, default=Path("build/thesis"), help="what is done (%(default)s)")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # the same each time
    for name, part in PARTS.items():
        if options.part in (None, name):
            kept = options.work / f"{name}.md"
            if not kept.exists():
                kept.write_text(part(options.work), encoding="utf-8")
            written(f"thesis-{name}", kept.read_text(encoding="utf-8"))


def sums(_work: Path) -> str:
    """Section 2.2.2: x + y by a thousand units, of which one would do; 'approximately 950' of them went."""
    rows = []
    for start, scale in (("normal, deviation 1", 1.0), ("torch's own", None)):
        for name, rule in RULES.items():
            left, losses = zip(*(_sum(rule, seed, scale) for seed in SEEDS), strict=True)
            due = "nearly 1" if isinstance(rule, Distorted) else "about 50"
            told = ", ".join("diverged" if loss != loss else f"{loss:.1e}" for loss in losses)
            rows.append(f"{start} | {name} | {due} | {', '.join(map(str, left))} | {told}")
    return table(
        "x + y, 1,000 hidden units", "first weights | pruning | thesis: units left | here, two seeds | loss", rows
    )


def _sum(rule: Rule, seed: int, scale: float | None) -> tuple[int, float]:
    """Return the units that are left, and the loss at the end."""
    torch.manual_seed(seed)
    net = nn.Sequential(nn.Linear(2, 1000), nn.ReLU(), nn.Linear(1000, 1))
    if scale is not None:
        for parameter in net.parameters():
            nn.init.normal_(parameter, 0, scale) if parameter.ndim > 1 else nn.init.zeros_(parameter)
    x = torch.rand(SAMPLES, 2) * 2 - 1
    y = x.sum(1, keepdim=True)
    loss = torch.tensor(0.0)

    def train(trained: nn.Module, penalty: Callable[[nn.Module], Tensor]) -> None:
        nonlocal loss
        optimiser = torch.optim.SGD(trained.parameters(), lr=0.01, momentum=0.3)
        for start in list(range(0, SAMPLES, BATCH)) * EPOCHS:
            loss = F.mse_loss(trained(x[start : start + BATCH]), y[start : start + BATCH])
            optimiser.zero_grad()
            (loss + penalty(trained)).backward()
            optimiser.step()

    prune_by(rule, PrunableNetwork(net, x[:2], [x[:100_000]], [net[2]]), train, seed=seed)
    return net[0].out_features, float(loss.detach())


def digits() -> tuple[Tensor, Tensor]:
    """Return the digits (1797, 1, 28, 28), 0 to 1, in an order drawn once, and their classes."""
    from sklearn.datasets import load_digits

    found = load_digits()
    large = np.stack(
        [cv2.resize(one, (28, 28), interpolation=cv2.INTER_CUBIC) for one in found.images.astype(np.float32)]
    )
    order = np.random.default_rng(0).permutation(len(large))
    shown = torch.from_numpy(large[order]).clamp(0, 16)[:, None] / 16
    return shown, torch.from_numpy(found.target[order])


def autoencoder(work: Path, part: str, rules: Mapping[str, Rule]) -> str:
    """Section 2.2.3: an autoencoder of [32, 64, 32] channels; 'pruned insignificantly', to [16, 64, 22].

    Every pruning runs with one seed before any runs with the next, and the table is written after each run.
    """
    shown, _ = digits()
    runs: dict[str, list[dict[str, list[Any]]]] = {name: [] for name in rules}
    for seed in CODER_SEEDS:
        for name, rule in rules.items():
            kept = work / f"autoencoder, {name}, {seed}.json"
            if not kept.exists():
                kept.write_text(json.dumps(_coder(shown, rule, seed)), encoding="utf-8")
            runs[name].append(json.loads(kept.read_text(encoding="utf-8")))
            written(f"thesis-{part}", _coder_table(runs))
    return _coder_table(runs)


def _coder_table(runs: Mapping[str, Sequence[Mapping[str, list[Any]]]]) -> str:
    rows = []
    for name, done in runs.items():
        for seed, run in zip(CODER_SEEDS, done, strict=False):
            losses = f"{run['losses'][0]:.4f} | {run['losses'][-1]:.4f}"
            steps = f"{run['steps'][0]:,} | {sum(run['steps']):,} | {len(run['steps'])}"
            rows.append(f"{name} | {seed} | {run['channels']} | {losses} | {steps}")
    columns = (
        "pruning | seed | channels left | loss before the first cut | at the end "
        "| steps before the first cut | in all | cycles"
    )
    under = (
        f"1,797 digits; the loss is flat if {CODER_WINDOW:,} steps lower it by less than {CODER_FLAT:.0%}; at least "
        f"{CODER_LEAST:,} steps before the first cut, {CODER_MOST:,} at most in a cycle; batches of {CODER_BATCH}.\n"
    )
    return "\n".join([table("The autoencoder [32, 64, 32] (thesis: [16, 64, 22])", columns, rows), under])


def _coder(shown: Tensor, rule: Rule, seed: int) -> dict[str, list[Any]]:
    """Return the channels that are left of encoders 1 and 2 and decoder 1, and each cycle's final loss and steps."""
    torch.manual_seed(seed)
    blocks: list[nn.Module] = []
    for wide_in, wide_out in ((1, 32), (32, 64)):
        blocks += [nn.Conv2d(wide_in, wide_out, 3, 2, 1), nn.BatchNorm2d(wide_out), nn.ReLU()]
    for wide_in, wide_out in ((64, 32), (32, 1)):
        blocks += [nn.ConvTranspose2d(wide_in, wide_out, 3, 2, 1, 1), nn.BatchNorm2d(wide_out), nn.ReLU()]
    net = nn.Sequential(*blocks)
    losses, steps = list[float](), list[int]()

    def train(trained: nn.Module, penalty: Callable[[nn.Module], Tensor]) -> None:
        optimiser = torch.optim.SGD(trained.parameters(), lr=0.01, momentum=0.9)
        trained.train()
        windows = list[float]()
        while not _is_flat(windows, CODER_LEAST if not losses else 2 * CODER_WINDOW):
            seen = []
            for _ in range(CODER_WINDOW):
                rows = shown[torch.randint(len(shown), (CODER_BATCH,))]
                with torch.autocast("cpu", torch.bfloat16):
                    shown_again = trained(rows)
                loss = F.mse_loss(shown_again.float(), rows)
                optimiser.zero_grad()
                (loss + penalty(trained)).backward()
                optimiser.step()
                seen.append(float(loss.detach()))
            windows.append(statistics.mean(seen))
        losses.append(windows[-1])
        steps.append(len(windows) * CODER_WINDOW)

    prune_by(rule, PrunableNetwork(net, shown[:2], [shown], [net[9], net[10]]), train, seed=seed)
    return {"channels": [net[place].out_channels for place in (0, 3, 6)], "losses": losses, "steps": steps}


def _is_flat(windows: Sequence[float], least_steps: int) -> bool:
    """Whether enough steps were taken and the last window's mean loss is hardly below that of the one before."""
    steps = len(windows) * CODER_WINDOW
    if steps < least_steps:
        return False
    return steps >= CODER_MOST or windows[-1] > (1 - CODER_FLAT) * windows[-2]


def classifier(_work: Path) -> str:
    """Section 2.3.1, Table 2.2: its figures stand unfinished in the thesis."""
    shown, classes = digits()
    part = len(shown) * 4 // 5
    held = shown[part:], classes[part:]
    torch.manual_seed(1)
    whole = _classifier()
    _fit(whole, shown[:part], classes[:part], CLASSIFIER_EPOCHS)
    nets = {"as it is": whole}
    for share in (0.5, 0.25, 0.1):
        cut = _classifier()
        cut.load_state_dict(whole.state_dict())
        one_d(cut, share)
        nets[f"{share:g} of the weights, by singular values"] = cut
        tuned = _classifier()
        tuned.load_state_dict(whole.state_dict())
        one_d(tuned, share)
        _fit(tuned, shown[:part], classes[:part], TUNING_EPOCHS)
        nets[f"{share:g}, fine-tuned"] = tuned
        torch.manual_seed(1)
        forced = _classifier()
        one_d(forced, share)
        _fit(forced, shown[:part], classes[:part], CLASSIFIER_EPOCHS)
        nets[f"{share:g}, one-dimensional from the start"] = forced
    times = _times(list(nets.values()), shown[:1])
    rows = []
    for (name, net), took in zip(nets.items(), times, strict=True):
        with torch.no_grad():
            correct = (net.eval()(held[0]).argmax(1) == held[1]).numpy()
        interval = share_interval(correct)
        share = f"{100 * correct.mean():.1f} ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
        rows.append(f"{name} | {count_operations(net, shown[:2]) / 1e6:.2f} | {share} | {took / times[0]:.2f}")
    return table(
        f"The classifier of Table 2.2, {len(held[1])} digits held out",
        "network | million operations | right, % | time",
        rows,
    )


def _classifier() -> nn.Sequential:
    first = [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*first, *second, nn.Conv2d(64, 128, 7), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10))


def _fit(net: nn.Module, shown: Tensor, classes: Tensor, epochs: int) -> None:
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(shown)).split(BATCH // 20):
            optimiser.zero_grad()
            F.cross_entropy(net(shown[rows]), classes[rows]).backward()
            optimiser.step()


def _times(nets: list[nn.Module], example: Tensor) -> list[float]:
    """Return the median seconds of one input, the networks timed by turns."""
    taken: list[list[float]] = [[] for _ in nets]
    with torch.no_grad():
        for _ in range(TIMED):
            for net, times in zip(nets, taken, strict=True):
                began = time.perf_counter()
                net.eval()(example)
                times.append(time.perf_counter() - began)
    return [statistics.median(times) for times in taken]


def sparse(_work: Path) -> str:
    """Section 2.2.1: single weights pruned; TensorFlow's guide names 15 % as the density where sparse products pay."""
    draw = torch.Generator().manual_seed(1)
    weights = torch.randn(1024, 1024, generator=draw)
    rows = []
    for columns in (1, 256):
        dense = torch.randn(1024, columns, generator=draw)
        for density in (0.5, 0.15, 0.05, 0.01):
            cut = weights * (torch.rand(weights.shape, generator=draw) < density)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that its sparse tensors may change
                kept = cut.to_sparse_csr()
            taken: dict[str, list[float]] = {"sparse": [], "dense": []}
            for _ in range(TIMED):
                for name, matrix in (("sparse", kept), ("dense", cut)):
                    began = time.perf_counter()
                    matrix @ dense
                    taken[name].append(time.perf_counter() - began)
            ratio = statistics.median(taken["sparse"]) / statistics.median(taken["dense"])
            rows.append(f"{columns} | {100 * density:g} % | {ratio:.2f}")
    return table(
        "Weights of 1,024 x 1,024, sparse beside dense", "columns of the other | density | time, sparse / dense", rows
    )


PARTS: dict[str, Callable[[Path], str]] = {
    "sums": sums,
    "autoencoder": lambda work: autoencoder(work, "autoencoder", CODER_RULES),
    "combined": lambda work: autoencoder(work, "combined", ALL_RULES),
    "classifier": classifier,
    "counts": lambda _work: "\n".join(table(*one) for one in counts()),
    "sparse": sparse,
}

if __name__ == "__main__":
    main()
