"""A miniature of the training data, and one thread on the processor so that every run gives the same bits.

Beside a torch of another build (its wheel is for CUDA) torchvision's own operators do not load, and its import fails on
one that classifiers never run. It is declared here.
"""

import contextlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")  # torch forgets what is declared when its declarer goes
for _name in ("nms", "qnms"):
    with contextlib.suppress(RuntimeError):  # declared already, by torchvision
        _OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

WNIDS = ("n00000001", "n00000002", "n00000003", "n00000004")
PER_CLASS = 100  # 80 to train on, 20 held out
COLOURS = ((200, 40, 40), (40, 200, 40), (40, 40, 200), (180, 180, 40))  # BGR


def drawn(label: int, rng: np.random.Generator) -> bytes:
    """A 64 x 64 JPEG of a disc in the colour of its class, somewhere on a noisy ground."""
    bgr = rng.integers(0, 256, (64, 64, 3), dtype=np.uint8)
    centre = tuple(int(c) for c in rng.integers(20, 44, 2))
    cv2.circle(bgr, centre, int(rng.integers(10, 20)), COLOURS[label], thickness=-1)
    done, encoded = cv2.imencode(".jpg", bgr)
    assert done
    return encoded.tobytes()


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the training takes it: tiny100-train.tar and tiny100-classes.tsv, of four classes."""
    folder = tmp_path_factory.mktemp("data")
    names = "".join(f"{wnid}\tdisc {i}, round thing\n" for i, wnid in enumerate(WNIDS))
    (folder / "tiny100-classes.tsv").write_text(names, encoding="utf-8")
    rng = np.random.default_rng(5)
    with tarfile.open(folder / "tiny100-train.tar", "w") as tar:
        for number in reversed(range(PER_CLASS)):  # not in sorted order, as in the real one
            for label, wnid in enumerate(WNIDS):
                content = drawn(label, rng)
                member = tarfile.TarInfo(f"{wnid}/{wnid}_{number}.JPEG")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return folder


@pytest.fixture(autouse=True)
def _one_thread_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
