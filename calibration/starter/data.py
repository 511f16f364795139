"""The training photographs in memory, and the random views of them that a model is trained on."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn import functional as F

from calibration.starter.night import darkened

SIDE_PX = 64
HELD_OUT_PER_CLASS = 20  # of 420: what is tuned is tuned on these, never on the calibration or test photographs
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Labels:
    """Class identifiers (WordNet) and English names, in the order of the models' outputs."""

    wnids: tuple[str, ...]
    names: tuple[str, ...]

    @classmethod
    def read(cls, tsv: Path) -> Labels:
        """Read lines of identifier, tab, names."""
        rows = [line.split("\t") for line in tsv.read_text(encoding="utf-8").splitlines() if line]
        return cls(tuple(row[0] for row in rows), tuple(row[1] for row in rows))


def read_tar(path: Path, labels: Labels) -> tuple[Tensor, Tensor]:
    """Return the photographs (n, 3, 64, 64) uint8 RGB and their classes (n,) int64, in the archive's sorted order."""
    index = {wnid: i for i, wnid in enumerate(labels.wnids)}
    pixels: list[np.ndarray] = []
    classes: list[int] = []
    with tarfile.open(path) as tar:
        members = sorted((m for m in tar.getmembers() if m.isfile()), key=lambda m: m.name)
        for member in members:
            handle = tar.extractfile(member)
            assert handle is not None
            image = Image.open(io.BytesIO(handle.read())).convert("RGB")
            pixels.append(np.asarray(image).transpose(2, 0, 1))
            classes.append(index[Path(member.name).parent.name])
    return torch.from_numpy(np.stack(pixels)), torch.tensor(classes)


def split(classes: Tensor) -> tuple[Tensor, Tensor]:
    """Return the row numbers to train on and those held out: the last 20 of each class."""
    train, held_out = [], []
    for label in range(int(classes.max()) + 1):
        rows = torch.nonzero(classes == label).flatten()
        train.append(rows[:-HELD_OUT_PER_CLASS])
        held_out.append(rows[-HELD_OUT_PER_CLASS:])
    return torch.cat(train), torch.cat(held_out)


def darken(pixels: Tensor, seed: Sequence[int]) -> Tensor:
    """Return images of the night, each drawn by the seed and its place. pixels: (n, 3, height, width) uint8 RGB."""

    def one(place: int) -> np.ndarray:
        bgr = np.ascontiguousarray(pixels[place].numpy()[::-1].transpose(1, 2, 0))
        return darkened(bgr, np.random.default_rng([*seed, place])).transpose(2, 0, 1)

    with ThreadPoolExecutor() as pool:
        return torch.from_numpy(np.stack(list(pool.map(one, range(len(pixels))))))


def normalise(pixels: Tensor) -> Tensor:
    """uint8 or float pixels 0 to 255 (n, 3, h, w) -> float32 with the mean and deviation taken out."""
    mean = torch.tensor(MEAN, device=pixels.device).view(1, 3, 1, 1) * 255
    std = torch.tensor(STD, device=pixels.device).view(1, 3, 1, 1) * 255
    return (pixels.float() - mean) / std


class Views:
    """Random resized crops with flips, drawn for every photograph at once: view v of photograph i never changes.

    That makes an interrupted run resumable at any epoch, and a teacher's answers to a view reusable by every student.
    """

    def __init__(self, photographs: int, seed: int, epoch: int, smallest_area: float) -> None:
        draw = torch.Generator().manual_seed(seed * 100_003 + epoch)
        self.order = torch.randperm(photographs, generator=draw)
        area = smallest_area + (1 - smallest_area) * torch.rand(photographs, generator=draw)
        ratio = torch.exp((torch.rand(photographs, generator=draw) * 2 - 1) * float(np.log(4 / 3)))
        width = (area * ratio).sqrt().clamp(max=1)
        height = (area / ratio).sqrt().clamp(max=1)
        x = (torch.rand(photographs, generator=draw) * 2 - 1) * (1 - width)
        y = (torch.rand(photographs, generator=draw) * 2 - 1) * (1 - height)
        flip = (torch.rand(photographs, generator=draw) < 0.5).float() * -2 + 1
        zero = torch.zeros(photographs)
        self._affine = torch.stack(
            [torch.stack([width * flip, zero, x], 1), torch.stack([zero, height, y], 1)], 1
        )  # (n, 2, 3), what affine_grid takes

    def take(self, pixels: Tensor, rows: Tensor, side_px: int) -> Tensor:
        """Return this epoch's view of the photographs `rows` of `pixels`, normalised (n, 3, side_px, side_px)."""
        affine = self._affine[rows].to(pixels.device)
        grid = F.affine_grid(affine, [len(rows), 3, side_px, side_px], align_corners=False)
        crop = F.grid_sample(normalise(pixels[rows]), grid, padding_mode="reflection", align_corners=False)
        return crop.contiguous(memory_format=torch.channels_last)


def cutmix(batch: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor, float]:
    """Paste a box from a shuffled copy into the batch (Yun et al. 2019); return it, the shuffle, the kept share."""
    side = batch.shape[-1]
    keep = float(torch.rand(1, generator=draw))
    box = round(side * (1 - keep) ** 0.5)
    top, left = (int(torch.randint(0, side - box + 1, (1,), generator=draw)) for _ in range(2))
    other = torch.randperm(len(batch), generator=draw)
    mixed = batch.clone(memory_format=torch.channels_last)
    mixed[:, :, top : top + box, left : left + box] = batch[other][:, :, top : top + box, left : left + box]
    return mixed, other, 1 - box * box / (side * side)
