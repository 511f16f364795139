"""Each of the ways in which people export a classifier is served as the plain one is, or refused with what helps."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from jetsel.base.errors import JetselError
from jetsel.engines.onnx import OnnxEngine
from jetsel.engines.trying import try_run
from jetsel.image.model_input import model_input
from jetsel.image.pixels import Photograph
from jetsel.zoo.adding import AddedModel, AddTarget, ModelDescription, add_model
from jetsel.zoo.labels import labels_from_names
from jetsel.zoo.manifest import Provenance
from jetsel.zoo.onnx_model import read_file
from tests.unit.zoo.exports import HEIGHT_PX, LABELS, SERVED, WIDTH_PX, Export, expected
from tests.unit.zoo.refused_exports import REFUSED

IMAGES = np.random.default_rng(1).integers(0, 256, (3, HEIGHT_PX, WIDTH_PX, 3), np.uint8)


def added(path: Path, export: Export) -> AddedModel:
    """Add the file as `jetsel models add` does."""
    wanted = ModelDescription(
        name="net",
        family="trees",
        likely_family=None,
        labels=labels_from_names([*LABELS, *map(str, range(100))][: export.labels], "trees.txt"),
        labels_from=Path("trees.txt"),
        spec=export.spec,
        input_px=export.input_px,
        provenance=Provenance(source="a test"),
        output=export.output,
        exclusive=export.exclusive,
    )
    where = AddTarget.of([path.parent / "models"], path.parent / "models", None)
    return add_model(read_file(path), wanted, where, lambda weights: try_run(weights, 1), replace=False)


def check(served: AddedModel, export: Export) -> None:
    """The answers are those of the plain export."""
    manifest = served.model.manifest
    engine = OnnxEngine("net", served.model.path, concurrency=1, threads=1)
    for image in IMAGES:
        photograph = Photograph(np.ascontiguousarray(image[..., ::-1]), WIDTH_PX, HEIGHT_PX)
        output = engine.infer(model_input(photograph, manifest.input))
        (found,) = output.logits
        assert found == pytest.approx(expected(export, image), abs=1e-3)
        assert output.logits.dtype == np.float32
        assert (output.embedding is None) == ("embedding" not in export.outputs)
        assert output.embedding is None or output.embedding.dtype == np.float32


@pytest.mark.parametrize("kind", SERVED)
def test_it_is_served_with_the_logits_of_the_plain_export(tmp_path: Path, kind: str) -> None:
    export = SERVED[kind]
    path = tmp_path / "net.onnx"
    onnx.save(export.model(), path)
    served = added(path, export)
    check(served, export)
    if export.says:
        assert any(re.search(export.says, line) for line in served.changes)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_served_is_refused_with_a_repair_that_works(tmp_path: Path, kind: str) -> None:
    export, says, repair = REFUSED[kind]
    path = tmp_path / "net.onnx"
    onnx.save(export.model(), path)
    with pytest.raises(JetselError, match=says):
        added(path, export)
    assert not any((tmp_path / "models").glob("*.json"))
    repaired = replace(export, **repair)
    onnx.save(repaired.model(), path)
    check(added(path, repaired), repaired)
