"""The thesis's pruning rules on a real model: `python -m calibration.papers.pruned LEARN TEST`.

The starter family's `m` is pruned by each rule of sections 2.2.2 and 2.2.3 and by all of them together: to a share of
its operations, by a bound that rises, and once more at the thesis's own bound until no channel goes. Each is fine-tuned
towards `m`'s answers on LEARN and judged on TEST: folders with a folder for each class. Epochs that are done are kept
in --work, so that the same command continues. Writes results/thesis-pruned.md. Needs pip install 'jetsel[export]'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor, nn

from calibration.optimizing.rules import RULES
from calibration.papers.cheaper import COLUMNS, SEED, Trial, add_arguments, trial
from calibration.papers.tables import table, written
from jetsel.train.optimize.activations import LEAST_LEFT, Rule, prune
from jetsel.train.optimize.distil import loss_of, view
from jetsel.train.optimize.steps import last_layer

PARENT = "m"
SHARE = 0.7  # of the multiply-accumulates
CYCLE_STEPS, CYCLE_RATE, CYCLE_BATCH = 100, 3e-4, 128  # of training between two cuts, as `jetsel models optimize` has
COUNTED = 512  # images on which activations are counted
WORDS = {
    "plain": "plain",
    "distorted": "distorted",
    "l1": "L1",
    "outliers": "outliers",
    "combined": "distorted, L1, outliers",
}


def main() -> None:
    """Prune, fine-tune, judge, and write both tables after each rule."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, "build/pruned")
    options = parser.parse_args()
    found = trial(PARENT, options)
    own: list[str] = []
    for name, rule in RULES.items():
        _pruned(found, f"{WORDS[name]}, {SHARE:.0%}", rule, SHARE)
        _write(found, own)
    for name, rule in RULES.items():
        net, went, cycles = _cut(found, rule, None)
        found.add(f"{WORDS[name]}, the thesis's bound", net, "0")
        own.append(f"{WORDS[name]} | {rule.bound:g} | {went} of {_channels(found.network())} | {cycles}")
        _write(found, own)


def _pruned(found: Trial, title: str, rule: Rule, share: float) -> None:
    """Prune to a share of the operations, or take what an earlier run pruned, and fine-tune."""
    kept = found.work / f"{title}.net"
    if not kept.exists():
        torch.save(_cut(found, rule, share)[0], kept)
    found.tune(title, torch.load(kept, weights_only=False))


def _cut(found: Trial, rule: Rule, share: float | None) -> tuple[nn.Module, int, int]:
    """Return a pruned network, how many channels went, and in how many cycles of training and cutting."""
    net, cycles = found.network(), 0

    def train(trained: nn.Module, penalty: Callable[[nn.Module], Tensor]) -> None:
        nonlocal cycles
        draw = torch.Generator().manual_seed(SEED * 1_000 + cycles)
        cycles += 1
        optimiser = torch.optim.AdamW(trained.parameters(), lr=CYCLE_RATE)
        trained.train()
        for _ in range(CYCLE_STEPS):
            rows = torch.randint(len(found.lesson.levels), (CYCLE_BATCH,), generator=draw)
            loss = loss_of(trained, found.lesson.teacher, view(found.lesson, rows, draw)) + penalty(trained)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()

    draw = torch.Generator().manual_seed(SEED)
    shown = [view(found.lesson, rows, draw) for rows in torch.arange(COUNTED).split(CYCLE_BATCH)]
    least = LEAST_LEFT if share is not None else 0.0
    went = prune(net, found.example, rule, train, shown, (last_layer(net),), share=share, least_left=least, seed=SEED)
    return net, went, cycles


def _channels(net: nn.Module) -> int:
    return sum(layer.out_channels for layer in net.modules() if isinstance(layer, nn.Conv2d))


def _write(found: Trial, own: list[str]) -> None:
    title = f"`{PARENT}`, pruned; {len(found.truth)} test images, fine-tuned on {len(found.lesson.levels)}"
    texts = [table(title, f"rule | {COLUMNS.format(PARENT, PARENT)}", found.rows())]
    if own:
        texts.append(table("At the thesis's own bound", "rule | bound | channels that went | cycles", own))
    written("thesis-pruned", "\n".join(texts))


if __name__ == "__main__":
    main()
