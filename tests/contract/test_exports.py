"""Every kind of export that is put right when it is added, on every backend: the same copy, the same logits."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from jetsel.base.weights import Weights
from jetsel.image import InputSpec
from jetsel.image.model_input import model_input
from jetsel.image.pixels import Photograph
from jetsel.zoo.classifier import classifier_of
from tests.contract.opening import Models
from tests.unit.zoo.exports import HEIGHT_PX, SERVED, WIDTH_PX, expected

KINDS = """channels last; half precision; double precision; levels, channels last, turned first; levels, quantised;
    grey; a softmax in 8 bits; (n, 1, 1, C); a sigmoid over one number; with an embedding"""
IMAGES = np.random.default_rng(2).integers(0, 256, (2, HEIGHT_PX, WIDTH_PX, 3), np.uint8)


@pytest.mark.parametrize("kind", [" ".join(kind.split()) for kind in KINDS.split(";")])
def test_the_copy_is_served_with_the_logits_of_the_plain_export(models: Models, tmp_path: Path, kind: str) -> None:
    export = SERVED[kind]
    found = classifier_of(export.model(), kind, export.labels, export.input_px)
    content = found.served()
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    spec = InputSpec(width_px=WIDTH_PX, height_px=HEIGHT_PX, **found.spec(export.spec))
    digest = hashlib.sha256(content).hexdigest()
    engine = models.open(Weights("net", path, digest, HEIGHT_PX, WIDTH_PX, export.labels))
    for image in IMAGES:
        photograph = Photograph(np.ascontiguousarray(image[..., ::-1]), WIDTH_PX, HEIGHT_PX)
        (logits,) = engine.infer(model_input(photograph, spec)).logits
        assert logits == pytest.approx(expected(export, image), abs=1e-3)
    engine.close()
