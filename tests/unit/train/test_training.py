"""Heads learn what embeddings tell; and images that teach and those that compare are never nearly the same."""

import re
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel import image
from jetsel.base.errors import CalibrationError
from jetsel.train.heads import Embedded, _choose_held_out, train_heads
from jetsel.train.optimize.making import OptimizeJob, _split_images
from jetsel.zoo import STARTER, scan

WIDTH = 16


def seen(classes: int, each: int, apart: float = 4.0) -> Embedded:
    draw = np.random.default_rng(3)
    numbers = np.repeat(np.arange(classes), each)
    centres = draw.normal(0, apart, (classes, WIDTH))
    embeddings = (centres[numbers] + draw.normal(size=(len(numbers), WIDTH))).astype(np.float32)
    noise = draw.normal(size=embeddings.shape).astype(np.float32)
    return Embedded({"small": embeddings, "noise": noise}, numbers, np.arange(len(numbers)), (), ())


@pytest.mark.parametrize("classes", [2, 5])
def test_a_head_answers_by_what_the_embedding_tells(classes: int) -> None:
    shown = seen(classes, 20)
    found = train_heads(shown, [f"class {number}" for number in range(classes)], lambda *_: None)
    head = found["small"].head
    logits = shown.embeddings["small"] @ head.weights + head.bias
    assert logits.shape == (20 * classes, classes)
    assert (logits.argmax(axis=1) == shown.classes).mean() > 0.95
    accuracies = {name: one.accuracy for name, one in found.items() if isinstance(one.accuracy, float)}
    assert accuracies["small"] > 0.95
    assert accuracies["noise"] < 0.8  # held out, though it may be learned by heart


def test_images_that_are_nearly_the_same_are_held_out_together_and_of_each_class_a_fifth() -> None:
    groups = np.repeat(np.arange(20), 10)  # ten clips of each class
    held = _choose_held_out(Embedded({}, groups % 2, groups, (), ()), ["even", "odd"])
    assert not isinstance(held, str)
    assert set(groups[held].tolist()).isdisjoint(groups[~held].tolist())
    assert [int(held[groups % 2 == number].sum()) for number in (0, 1)] == [20, 20]


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([0] * 8 + [1] * 8, r"16 images, 2 of them distinct: .* cat \(1\), dog \(1\)"),
        ([*range(4), 3, 3, 3, 3, *range(4, 12)], r"16 images, 12 of them distinct: .* other images of cat \(4\), from"),
    ],
)
def test_too_few_distinct_images_give_the_reason_and_no_accuracy(groups: list[int], words: str) -> None:
    found = train_heads(replace(seen(2, 8), groups=np.array(groups)), ["cat", "dog"], lambda *_: None)
    assert re.match(words, str(found["small"].accuracy))


@pytest.mark.parametrize(
    ("shown", "names", "said"),
    [
        (seen(2, 4), ["cat", "dog"], r"too few of cat \(4\), dog \(4\): 5 images of each of two or more classes"),
        (seen(1, 20), ["cat"], "only one class: 5 images"),
    ],
)
def test_too_few_photographs_are_refused(shown: Embedded, names: list[str], said: str) -> None:
    with pytest.raises(CalibrationError, match=said):
        train_heads(shown, names, lambda *_: None)


FAMILY = scan([STARTER]).families["starter"]


def test_near_duplicates_and_files_that_cannot_be_read_are_on_no_two_sides(tmp_path: Path) -> None:
    draw, paths = np.random.default_rng(2), []
    for clip in range(9):
        scene = cv2.resize(draw.integers(0, 256, (8, 8, 3), np.uint8), (96, 96), interpolation=cv2.INTER_CUBIC)
        for frame in range(5):
            paths.append(tmp_path / f"{clip}-{frame}.png")
            cv2.imwrite(str(paths[-1]), np.clip(scene + draw.normal(0, 2, scene.shape), 0, 255).astype(np.uint8))
    paths.append(tmp_path / "broken.png")
    paths[-1].write_bytes(b"no image")
    limits = image.Limits(max_bytes=1_000_000, max_pixels=1_000_000)
    images = [(path, 0) for path in paths]
    order = OptimizeJob(FAMILY.models[0], FAMILY, "int8", images, limits, 1, False, 1.0, tmp_path)
    learn, held = ([path.name for path, _ in part] for part in _split_images(order, lambda *_: None))
    assert (len(learn), len(held)) == (30, 15)
    assert {name[0] for name in learn}.isdisjoint({name[0] for name in held})
