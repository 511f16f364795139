"""One thread on the processor, so that every run gives the same bits.

Beside a torch of another build (its wheel is for CUDA) torchvision's own operators do not load, and its import fails on
one that classifiers never run. It is declared here.
"""

import contextlib
from collections.abc import Iterator

import pytest
import torch

_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")  # torch forgets what is declared when its declarer goes
for _name in ("nms", "qnms"):
    with contextlib.suppress(RuntimeError):  # declared already, by torchvision
        _OPERATORS.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


@pytest.fixture(autouse=True)
def _one_thread_of_the_processor(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
