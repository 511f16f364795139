"""Planted faults in a training set are listed, each in its kind, and a clean set lists few."""

from dataclasses import replace

import numpy as np
import pytest

from jetsel.calibrate.judge.doubtful import MOST_SHOWN, find_doubtful
from jetsel.calibrate.record.recording import Recording

CLASSES, EACH, WIDTH = 4, 50, 32
NAMES = ["cat", "dog", "cow", "fox"]
TEMPERATURES = {"s": 1.0, "l": 1.0}


@pytest.fixture
def clean() -> Recording:
    """Four classes, each around a direction of its own; both models are right and sure."""
    drawn = np.random.default_rng(0)
    classes = np.repeat(np.arange(CLASSES), EACH)
    middles = np.eye(CLASSES, WIDTH) * 3
    vectors = middles[classes] + drawn.normal(0, 0.5, (len(classes), WIDTH))
    logits = np.eye(CLASSES)[classes] * 8 + drawn.normal(0, 1, (2, len(classes), CLASSES))
    return Recording(
        models=("s", "l"),
        logits=logits.astype(np.float32),
        classes=classes,
        features=np.zeros((len(classes), 1), np.float32),
        costs_ms={"s": 1.0, "l": 3.0},
        embeddings=vectors.astype(np.float16),
        paths=tuple(f"{NAMES[number]}/{row}.jpg" for row, number in enumerate(classes)),
        feature_names=("brightness",),
    )


def test_a_clean_set_lists_few(clean: Recording) -> None:
    found = find_doubtful(clean, NAMES, TEMPERATURES)
    assert (found.contradicted.total, found.near.total) == (0, 0)
    assert found.far.total <= 6


def test_a_wrong_label_is_contradicted_and_the_reason_names_what_the_models_say(clean: Recording) -> None:
    classes = clean.classes.copy()
    classes[[3, 60]] = [2, 0]
    found = find_doubtful(replace(clean, classes=classes), NAMES, TEMPERATURES)
    assert {(one.path, one.label) for one in found.contradicted.images} == {("cat/3.jpg", "cow"), ("dog/60.jpg", "cat")}
    (reason,) = [one.why for one in found.contradicted.images if one.path == "cat/3.jpg"]
    assert "the models say cat" in reason


def test_a_copy_in_another_class_is_named_once_with_its_twin(clean: Recording) -> None:
    assert clean.embeddings is not None
    vectors = clean.embeddings.copy()
    vectors[170] = vectors[10] * 1.01
    found = find_doubtful(replace(clean, embeddings=vectors), NAMES, TEMPERATURES).near
    assert (found.total, found.images[0].path) == (1, "cat/10.jpg")
    assert found.images[0].why == "nearly the same as fox/170.jpg, labelled fox"


def test_an_image_of_something_else_is_far_and_the_most_far_stand_first(clean: Recording) -> None:
    assert clean.embeddings is not None
    vectors = clean.embeddings.copy()
    vectors[120] = 0
    vectors[120, WIDTH - 1] = 5
    found = find_doubtful(replace(clean, embeddings=vectors), NAMES, TEMPERATURES).far
    assert found.images[0].path == "cow/120.jpg"
    assert len(found.images) <= MOST_SHOWN
