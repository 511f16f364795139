"""The measured table: the right photographs, hand-worked figures, and refusals that say what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from calibration.starter import data as training_data
from calibration.starter import measure
from calibration.starter.export import SPEC
from jetsel.zoo import Family, scan
from tests.unit.zoo.making import put_model


def family(folder: Path) -> Family:
    put_model(
        folder, name="a", file="a.onnx", multiply_accumulates=1_000_000, parameters=50_000, weights=bytes(250_000)
    )
    put_model(
        folder, name="b", file="b.onnx", multiply_accumulates=9_000_000, parameters=450_000, weights=bytes(10_000)
    )
    return scan([folder]).families["pets"]


def test_the_held_out_photographs_are_those_that_training_left_out(data: Path) -> None:
    labels = training_data.Labels.read(data / "tiny100-classes.tsv")
    pixels, classes = training_data.read_tar(data / "tiny100-train.tar", labels)
    _, held_out = training_data.split(classes)
    ours = measure.read_photographs(data / "tiny100-train.tar", labels.wnids, measure.HELD_OUT_PER_CLASS)
    assert ours.classes.tolist() == classes[held_out].tolist()
    inputs = measure.inputs_of(ours, SPEC, 64)
    theirs = training_data.normalise(pixels[held_out]).numpy()
    assert inputs.shape == theirs.shape == (80, 3, 64, 64)
    # Two builds of one JPEG decoder: a level here and there (0.018 in these units), never another photograph.
    assert float(np.abs(inputs - theirs).mean()) < 0.01


def test_top_counts_the_classes_that_are_more_probable() -> None:
    probabilities = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], np.float32)
    classes = np.array([0, 1, 0])
    assert measure.top(probabilities, classes, 1).tolist() == [True, False, False]
    assert measure.top(probabilities, classes, 2).tolist() == [True, True, False]
    assert measure.top(probabilities, classes, 3).tolist() == [True, True, True]


def test_a_table_worked_by_hand(tmp_path: Path) -> None:
    seen = [np.array([[0.9, 0.1], [0.8, 0.2]], np.float32), np.array([[0.9, 0.1], [0.3, 0.7]], np.float32)]
    times_ms = np.array(
        [
            [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]],  # the machine slows down in the second round:
            [[3.0, 3.0, 3.0], [6.0, 6.0, 6.0]],  # within a round b takes 3 times as long as a
        ]
    )
    models = family(tmp_path)
    record = {"sha256": models.models[0].manifest.sha256, "seconds": 90.0 * 60}
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / "a.json").write_text(json.dumps(record))
    (tmp_path / "trained" / "b.json").write_text(json.dumps(record | {"sha256": "of other weights"}))
    assert measure.rows(models, seen, np.array([0, 1]), times_ms, tmp_path / "trained") == [
        ["a", "50.0", "100.0", "1.0", "0.05", "0.25", "1.500", "2.000", "–", "90"],
        ["b", "100.0", "100.0", "9.0", "0.45", "0.01", "4.500", "6.000", "3.00", "–"],
    ]
