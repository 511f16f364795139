"""A teacher's answers to the random views, written once for all students: `python -m calibration.starter.teach`."""

from __future__ import annotations

import argparse
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from calibration.starter.data import SIDE_PX, Labels, Views, read_tar, split
from calibration.starter.nets import SHAPES
from calibration.starter.published import net_of
from jetsel.zoo import STARTER

TEACHER_VIEW_SEED = 7
TEACHER_SMALLEST_AREA = 0.4
VIEWS = 16  # students of more epochs see them again, mirrored by chance


def views_of(photographs: int, view: int) -> Views:
    """One of the views that teachers answer and students learn from."""
    return Views(photographs, TEACHER_VIEW_SEED, view, TEACHER_SMALLEST_AREA)


class Lessons:
    """Logits of the averaged teachers for every photograph (n, classes) float16, one file a view."""

    def __init__(self, views: list[np.ndarray]) -> None:
        self._views = views

    @classmethod
    def read(cls, work: Path, teachers: tuple[str, ...]) -> Lessons:
        """Open the views that `teach` wrote for these teachers; raises SystemExit where any is missing."""
        files = sorted(work.glob(f"lessons-{'+'.join(teachers)}-*.npy"))
        if len(files) < VIEWS:  # fewer would train, and differently: views are taken by turns
            raise SystemExit(
                f"{len(files)} of {VIEWS} lessons of {'+'.join(teachers)} in {work}: "
                f"run python -m calibration.starter.teach {' '.join(teachers)} first"
            )
        return cls([np.load(file, mmap_mode="r") for file in files])

    def views(self, epoch: int) -> Views:
        """The views that this epoch shows: those the teacher saw."""
        return views_of(len(self._views[0]), epoch % len(self._views))

    def logits(self, epoch: int, rows: Tensor) -> Tensor:
        """The teacher's logits (len(rows), classes) float32 for this epoch's view."""
        return torch.from_numpy(self._views[epoch % len(self._views)][rows.numpy()].astype(np.float32))


class DayLessons:
    """What a teacher answers to the image of the day, while the student sees the same view of it at night."""

    def __init__(self, teacher: str, pixels: Tensor, seed: int, smallest_area: float) -> None:
        """Load the published teacher. pixels: (n, 3, 64, 64) uint8, of the day."""
        self._net = net_of(teacher, STARTER / f"{teacher}.onnx").to(pixels.device, memory_format=torch.channels_last)
        self._pixels, self._seed, self._smallest_area = pixels, seed, smallest_area

    @lru_cache(maxsize=1)  # noqa: B019 - there is one, and it lives as long as the training
    def views(self, epoch: int) -> Views:
        """The views that this epoch shows."""
        return Views(len(self._pixels), self._seed, epoch, self._smallest_area)

    @torch.no_grad()
    def logits(self, epoch: int, rows: Tensor) -> Tensor:
        """The teacher's logits (len(rows), classes) float32 for this epoch's view by day."""
        batch = self.views(epoch).take(self._pixels, rows, SIDE_PX)
        with torch.autocast(batch.device.type, torch.bfloat16):
            return self._net(batch)[0].float()


@torch.no_grad()
def main() -> None:
    """Write the missing views; interrupted, the same command goes on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("teachers", nargs="+", choices=sorted(SHAPES))
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("build/starter"), help="lessons (default: %(default)s)")
    parser.add_argument(
        "--published", type=Path, default=STARTER, help="the teachers' ONNX files (default: the starter family)"
    )
    options = parser.parse_args()
    labels = Labels.read(options.data / "tiny100-classes.tsv")
    pixels, classes = read_tar(options.data / "tiny100-train.tar", labels)
    rows, _ = split(classes)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    nets = []
    for name in options.teachers:
        net = net_of(name, options.published / f"{name}.onnx")
        nets.append(net.to(device, memory_format=torch.channels_last))
    for view in range(VIEWS):
        target = options.work / f"lessons-{'+'.join(options.teachers)}-{view:02d}.npy"
        if target.exists():
            continue
        views = views_of(len(pixels), view)
        answers = np.full((len(pixels), len(labels.wnids)), np.nan, np.float16)  # held-out rows stay unknown
        for start in range(0, len(rows), 500):
            take = rows[start : start + 500]
            batch = views.take(pixels, take, SIDE_PX).to(device)
            with torch.autocast(device.type, torch.bfloat16):
                mean = torch.stack([net(batch)[0].float() for net in nets]).mean(0)
            answers[take.numpy()] = mean.cpu().numpy()
            print(f"\rview {view + 1}/{VIEWS} {100 * start // len(rows):3d} %", end="", flush=True)
        part = target.with_suffix(".part")
        with part.open("wb") as handle:
            np.save(handle, answers)
        part.rename(target)
    print(f"\rlessons of {'+'.join(options.teachers)}: {VIEWS} views")


if __name__ == "__main__":
    main()
