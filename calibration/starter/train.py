"""Train one model of the starter family: `python -m calibration.starter.train NAME`; the same command resumes it."""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from calibration.starter.data import SIDE_PX, Labels, Views, cutmix, darken, normalise, read_tar, split
from calibration.starter.nets import SHAPES, Net
from calibration.starter.published import net_of, unfolded
from calibration.starter.teach import DayLessons, Lessons
from jetsel.zoo import STARTER

BATCH = 128
MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
LABEL_SMOOTHING = 0.1
WARM_UP_SHARE = 0.12
STATISTICS = 1000  # photographs whose statistics a published model's normalisations get
TEMPERATURE = 2.0  # of both sides of the distillation loss (Hinton et al. 2015, section 2)


@dataclass(frozen=True)
class Recipe:
    """How one model is trained. `sides_px`: (share of the epochs, side); small pictures come first, being cheap."""

    epochs: int
    seed: int
    learning_rate: float = 0.2
    sides_px: tuple[tuple[float, int], ...] = ((1.0, SIDE_PX),)
    smallest_area: float = 0.35  # of a random crop; students see their teacher's views
    cutmix_share: float = 0.0  # of the batches, none in the last tenth of the epochs
    teachers: tuple[str, ...] = ()
    teacher_share: float = 0.9  # of the loss; the rest is the label's
    tuned: str | None = (
        None  # the published model that it begins as; it sees images of the night, its teacher the day's
    )

    def side_px(self, epoch: int) -> int:
        """The side of the pictures in this epoch."""
        passed = 0.0
        for share, side in self.sides_px:
            passed += share
            if epoch < round(passed * self.epochs):
                return side
        return SIDE_PX


GROWING = ((0.3, 40), (0.3, 48), (0.2, 56), (0.2, 64))
GROWING_FROM_32 = ((0.25, 32), (0.35, 40), (0.2, 48), (0.2, 64))
RECIPES = {
    "xs": Recipe(epochs=32, seed=11, teachers=("l",)),
    "s": Recipe(epochs=32, seed=12, teachers=("l",)),
    "m": Recipe(epochs=24, seed=13, teachers=("l",)),
    "l": Recipe(epochs=34, seed=14, sides_px=GROWING, cutmix_share=0.3),
    # Larger than its teacher: from labels alone it learns its photographs by heart; the labels keep it another model.
    "xl": Recipe(epochs=22, seed=15, sides_px=GROWING_FROM_32, cutmix_share=0.5, teachers=("l",), teacher_share=0.7),
    "s-night": Recipe(epochs=6, seed=16, learning_rate=0.05, smallest_area=0.5, teachers=("l",), tuned="s"),
    "m-night": Recipe(epochs=6, seed=17, learning_rate=0.05, smallest_area=0.5, teachers=("l",), tuned="m"),
}


def rate(recipe: Recipe, passed: float) -> float:
    """The learning rate after `passed` epochs: a linear rise, then a half cosine down to zero."""
    peak, progress = recipe.learning_rate, passed / recipe.epochs
    if progress < WARM_UP_SHARE:
        return peak * progress / WARM_UP_SHARE
    return peak * 0.5 * (1 + math.cos(math.pi * (progress - WARM_UP_SHARE) / (1 - WARM_UP_SHARE)))


def loss_of(
    logits: Tensor, classes: Tensor, other: Tensor | None, kept: float, taught: Tensor | None, teacher_share: float
) -> Tensor:
    """Cross-entropy with the labels, and the teacher's share; of both photographs where two were mixed."""

    def towards(rows: Tensor | slice) -> Tensor:
        smoothing = 0.0 if taught is not None else LABEL_SMOOTHING
        loss = F.cross_entropy(logits, classes[rows], label_smoothing=smoothing)
        if taught is None:
            return loss
        student = F.log_softmax(logits / TEMPERATURE, 1)
        teacher = F.softmax(taught[rows] / TEMPERATURE, 1)
        distilled = F.kl_div(student, teacher, reduction="batchmean") * TEMPERATURE**2
        return teacher_share * distilled + (1 - teacher_share) * loss

    if other is None:
        return towards(slice(None))
    return kept * towards(slice(None)) + (1 - kept) * towards(other)


@torch.no_grad()
def accuracy(net: nn.Module, pixels: Tensor, classes: Tensor) -> float:
    """Share of right top-1 answers on whole, unflipped photographs."""
    net.eval()
    right = 0
    for start in range(0, len(pixels), 500):
        batch = normalise(pixels[start : start + 500]).contiguous(memory_format=torch.channels_last)
        with torch.autocast(pixels.device.type, torch.bfloat16):
            guesses = net(batch)[0].argmax(1)
        right += int((guesses == classes[start : start + 500]).sum())
    net.train()
    return right / len(pixels)


class Training:
    """The state of one run: the network, its running average, the optimiser, and where it is."""

    def __init__(self, name: str, classes: int, device: torch.device, shown: Tensor) -> None:
        """Begin. shown: some photographs, of which a published model's normalisations are restored."""
        self.recipe = RECIPES[name]
        torch.manual_seed(self.recipe.seed)
        net = Net(SHAPES[name], classes)
        if self.recipe.tuned is not None:
            published = net_of(self.recipe.tuned, STARTER / f"{self.recipe.tuned}.onnx")
            net = unfolded(published, normalise(shown)).train()
        self.net = net.to(device, memory_format=torch.channels_last)
        self.average = Net(SHAPES[name], classes).to(device, memory_format=torch.channels_last)
        self.average.load_state_dict(self.net.state_dict())
        decayed = [p for p in self.net.parameters() if p.ndim > 1]
        others = [p for p in self.net.parameters() if p.ndim <= 1]
        groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
        self.optimiser = torch.optim.SGD(groups, lr=0.0, momentum=MOMENTUM, nesterov=True)
        self.epoch = 0
        self.seconds = 0.0
        self.log: list[dict[str, float]] = []

    def save(self, path: Path) -> None:
        """Write under a temporary name and rename, so that an interruption leaves the last whole checkpoint."""
        state = {
            "net": self.net.state_dict(),
            "average": self.average.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "epoch": self.epoch,
            "seconds": self.seconds,
            "log": self.log,
        }
        torch.save(state, path.with_suffix(".part"))
        path.with_suffix(".part").rename(path)

    def resume(self, path: Path) -> None:
        """Take up the last checkpoint where there is one."""
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        self.net.load_state_dict(state["net"])
        self.average.load_state_dict(state["average"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.epoch, self.seconds, self.log = state["epoch"], state["seconds"], state["log"]

    def follow(self, steps_per_epoch: int) -> None:
        """Move the running average of weights and statistics towards the network; its memory is about one epoch."""
        step = 2.0 / steps_per_epoch
        with torch.no_grad():
            for mean, now in zip(self.average.state_dict().values(), self.net.state_dict().values(), strict=True):
                if mean.is_floating_point():
                    mean.lerp_(now, step)
                else:
                    mean.copy_(now)


def run_epoch(
    state: Training, pixels: Tensor, classes: Tensor, rows: Tensor, lessons: Lessons | DayLessons | None
) -> float:
    """Train one epoch and return its mean loss."""
    recipe, epoch = state.recipe, state.epoch
    views = lessons.views(epoch) if lessons else Views(len(pixels), recipe.seed, epoch, recipe.smallest_area)
    draw = torch.Generator().manual_seed(recipe.seed * 1_000_003 + epoch)
    order = rows[torch.randperm(len(rows), generator=draw)]
    steps = len(order) // BATCH
    device = next(state.net.parameters()).device
    total = 0.0
    for step in range(steps):
        take = order[step * BATCH : (step + 1) * BATCH]
        batch = views.take(pixels, take, recipe.side_px(epoch)).to(device)
        other, kept = None, 1.0
        if epoch < 0.9 * recipe.epochs and float(torch.rand(1, generator=draw)) < recipe.cutmix_share:
            batch, other, kept = cutmix(batch, draw)
        taught = lessons.logits(epoch, take).to(device) if lessons else None
        for group in state.optimiser.param_groups:
            group["lr"] = rate(recipe, epoch + step / steps)
        with torch.autocast(device.type, torch.bfloat16):
            logits, _ = state.net(batch)
        loss = loss_of(logits.float(), classes[take].to(device), other, kept, taught, recipe.teacher_share)
        state.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        state.optimiser.step()
        state.follow(steps)
        total += float(loss.detach())
        if step % 20 == 0:
            print(f"\r  epoch {epoch + 1}/{recipe.epochs} {100 * step // steps:3d} %", end="", flush=True)
    return total / steps


def main() -> None:
    """Train the named model to the end of its recipe, from the last checkpoint where there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=sorted(RECIPES))
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with tiny100-train.tar and tiny100-classes.tsv"
    )
    parser.add_argument(
        "--work", type=Path, default=Path("build/starter"), help="checkpoints and lessons (default: %(default)s)"
    )
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)

    labels = Labels.read(options.data / "tiny100-classes.tsv")
    pixels, classes = read_tar(options.data / "tiny100-train.tar", labels)
    rows, held_out = split(classes)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    state = Training(options.name, len(labels.wnids), device, pixels[held_out[:STATISTICS]])
    checkpoint = options.work / f"{options.name}.pt"
    state.resume(checkpoint)
    recipe = state.recipe
    lessons: Lessons | DayLessons | None = None
    judged_on = pixels[held_out]
    if recipe.tuned is not None:
        lessons = DayLessons(recipe.teachers[0], pixels, recipe.seed, recipe.smallest_area)
        judged_on = darken(judged_on, [recipe.seed])
    elif recipe.teachers:
        lessons = Lessons.read(options.work, recipe.teachers)
    while state.epoch < state.recipe.epochs:
        began = time.monotonic()
        shown = pixels if recipe.tuned is None else darken(pixels, [recipe.seed, state.epoch])
        loss = run_epoch(state, shown, classes, rows, lessons)
        state.seconds += time.monotonic() - began
        state.epoch += 1
        seen = accuracy(state.average, judged_on, classes[held_out])
        state.log.append({"epoch": state.epoch, "loss": loss, "held_out_top1": seen, "seconds": state.seconds})
        state.save(checkpoint)
        left = state.seconds / state.epoch * (state.recipe.epochs - state.epoch)
        print(
            f"\r{options.name} epoch {state.epoch}/{state.recipe.epochs} loss {loss:.3f} "
            f"held-out top-1 {100 * seen:.1f} % after {state.seconds / 60:.1f} min, {left / 60:.0f} min left",
            flush=True,
        )
    print(json.dumps({"name": options.name, "held_out_top1": state.log[-1]["held_out_top1"], "seconds": state.seconds}))


if __name__ == "__main__":
    main()
