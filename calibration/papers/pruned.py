"""The thesis's pruning rules on a real model: `python -m calibration.papers.pruned LEARN TEST`.

The starter family's `m` is pruned by each rule of sections 2.2.2 and 2.2.3 and by all of them together, to a share of
its operations, by a bound that rises. Each is fine-tuned towards `m`'s answers on LEARN and judged on TEST: folders
with a folder for each class. Epochs that are done are kept in --work, so that the same command continues. Writes
results/thesis-pruned.md. Needs pip install 'jetsel[export]'.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import count

import torch
from torch import Tensor, nn

from calibration.optimizing.rules import RULES, Rule, prune_by
from calibration.papers.cheaper import COLUMNS, SEED, Trial, add_arguments, trial
from calibration.papers.tables import table, written
from jetsel.train.optimize.activations import PrunableNetwork
from jetsel.train.optimize.distil import distillation_loss, random_crops
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
    """Prune, fine-tune, judge, and write the table after each rule."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser, "build/pruned")
    found = trial(PARENT, parser.parse_args())
    for name, rule in RULES.items():
        title = f"{WORDS[name]}, {SHARE:.0%}"
        kept = found.work / f"{title}.net"
        if not kept.exists():
            torch.save(pruned(found, rule), kept)
        found.tune(title, torch.load(kept, weights_only=False))
        text = f"`{PARENT}`, pruned; {len(found.truth)} test images, fine-tuned on {len(found.lesson.levels)}"
        written("thesis-pruned", table(text, f"rule | {COLUMNS.format(PARENT, PARENT)}", found.rows()))


def pruned(found: Trial, rule: Rule) -> nn.Module:
    """Return the model, pruned to SHARE of its operations in cycles of training and cutting."""
    net, cycles = found.network(), count()

    def train(trained: nn.Module, penalty: Callable[[nn.Module], Tensor]) -> None:
        draw = torch.Generator().manual_seed(SEED * 1_000 + next(cycles))
        optimiser = torch.optim.AdamW(trained.parameters(), lr=CYCLE_RATE)
        trained.train()
        for _ in range(CYCLE_STEPS):
            rows = torch.randint(len(found.lesson.levels), (CYCLE_BATCH,), generator=draw)
            loss = distillation_loss(trained, found.lesson.teacher, random_crops(found.lesson, rows, draw)) + penalty(
                trained
            )
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()

    draw = torch.Generator().manual_seed(SEED)
    shown = [random_crops(found.lesson, rows, draw) for rows in torch.arange(COUNTED).split(CYCLE_BATCH)]
    prune_by(rule, PrunableNetwork(net, found.example, shown, (last_layer(net),)), train, share=SHARE, seed=SEED)
    return net


if __name__ == "__main__":
    main()
