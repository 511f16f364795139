"""Heads learn what embeddings tell, and say how often they are right on what they have not seen."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.base.errors import CalibrationError
from jetsel.train.heads import Embedded, train

WIDTH = 16


def seen(classes: int, each: int, apart: float = 4.0) -> Embedded:
    draw = np.random.default_rng(3)
    numbers = np.repeat(np.arange(classes), each)
    centres = draw.normal(0, apart, (classes, WIDTH))
    embeddings = (centres[numbers] + draw.normal(size=(len(numbers), WIDTH))).astype(np.float32)
    return Embedded({"small": embeddings, "noise": draw.normal(size=embeddings.shape).astype(np.float32)}, numbers, ())


@pytest.mark.parametrize("classes", [2, 5])
def test_a_head_answers_by_what_the_embedding_tells(classes: int) -> None:
    shown = seen(classes, 20)
    found = train(shown, [f"class {number}" for number in range(classes)], lambda *_: None)
    head = found["small"].head
    logits = shown.embeddings["small"] @ head.weights + head.bias
    assert logits.shape == (20 * classes, classes)
    assert (logits.argmax(axis=1) == shown.classes).mean() > 0.95
    assert found["small"].accuracy > 0.95
    assert found["noise"].accuracy < 0.8  # held out, though it may be learned by heart


@pytest.mark.parametrize(
    ("shown", "names", "said"),
    [
        (seen(2, 4), ["cat", "dog"], r"too few of cat \(4\), dog \(4\): 5 images of each of two or more classes"),
        (seen(1, 20), ["cat"], "only one class: 5 images"),
    ],
)
def test_too_few_photographs_are_refused(shown: Embedded, names: list[str], said: str) -> None:
    with pytest.raises(CalibrationError, match=said):
        train(shown, names, lambda *_: None)
