"""Which ONNX files can be served as classifiers, where their logits are, and what the others are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from jetsel.errors import ManifestError
from jetsel.zoo.classifier import Classifier, classifier_in
from jetsel.zoo.onnx_graph import with_alias, with_output
from tests.contract.tiny import HEIGHT_PX, WIDTH_PX
from tests.unit.zoo.networks import FLOAT16, network

SOFTMAX = ("Softmax", "scores", "shares")
OPEN = (b"n", 3, b"h", b"w")


def found(
    tmp_path: Path, content: bytes, input_px: tuple[int, int] | None = None, output: str | None = None
) -> Classifier:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    return classifier_in(path, "net.onnx", input_px, output)


def test_the_size_is_the_files_or_the_owners(tmp_path: Path) -> None:
    fixed = found(tmp_path, network())
    assert (fixed.height_px, fixed.width_px) == (HEIGHT_PX, WIDTH_PX)
    chosen = found(tmp_path, network(sides=OPEN), (64, 48))
    assert (chosen.width_px, chosen.height_px) == (64, 48)
    assert found(tmp_path, network(), (WIDTH_PX, HEIGHT_PX)) == fixed


def test_the_logits_are_the_output_called_so_or_the_only_one_or_the_one_named(tmp_path: Path) -> None:
    named = found(tmp_path, network(("Identity", "scores", "logits"), outputs=["scores", "logits"]))
    assert (named.logits, named.suffix) == ("logits", b"")
    only = found(tmp_path, network())
    assert (only.logits, only.suffix) == ("scores", with_alias("scores", "logits"))
    beside = found(tmp_path, network(("Identity", "flat", "embedding"), outputs=["scores", "embedding"]))
    assert (beside.logits, beside.has_embedding) == ("scores", True)
    inside = found(tmp_path, network(SOFTMAX, outputs=["shares"]), output="scores")
    assert inside.suffix == with_alias("scores", "logits")


def test_logits_inside_are_taken_before_the_only_output(tmp_path: Path) -> None:
    net = network(("Identity", "scores", "logits"), ("Softmax", "logits", "shares"), outputs=["shares"])
    assert found(tmp_path, net).suffix == with_output("logits")


def test_what_a_softmax_is_made_from(tmp_path: Path) -> None:
    assert found(tmp_path, network(SOFTMAX, outputs=["shares"])).before_softmax == "scores"
    assert found(tmp_path, network()).before_softmax is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (network(inputs=["images", "sizes"]), r"takes 2 inputs \(images, sizes\)"),
        (network(inputs=[]), r"takes 0 inputs \(none\)"),
        (network(elem_type=FLOAT16), "not of float32"),
        (network(sides=(b"n", HEIGHT_PX, WIDTH_PX, 3)), r"is \(\?, 2, 3, 3\) where \(n, 3, height, width\) is due"),
        (network(sides=(b"n", b"h", b"w", 3)), "channels first"),
        (network(sides=(b"n", 1, 8, 8)), "for colour photographs"),
        (network(sides=(b"n", 18)), r"is \(\?, 18\)"),
        (network(sides=(4, 3, 2, 3)), "takes 4 photographs at a time"),
        (network(sides=OPEN), "--input 224x224"),
        (network(SOFTMAX, outputs=["scores", "shares"]), "has the outputs scores, shares: .* --output scores"),
        (network(outputs=[]), r"\(none\)"),
        (b"no model", "no ONNX file"),
    ],
)
def test_what_cannot_be_served_names_the_repair(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as raised:
        found(tmp_path, content)
    assert str(raised.value).startswith("net.onnx: ")


def test_what_the_owner_says_must_be_so(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="its input is 3 x 2 px, not 224 x 224: leave --input out"):
        found(tmp_path, network(), (224, 224))
    with pytest.raises(ManifestError, match="computes no 'probs'; its outputs are scores"):
        found(tmp_path, network(), output="probs")
    two = network(("Identity", "scores", "logits"), outputs=["scores", "logits"])
    with pytest.raises(ManifestError, match="calls another tensor logits already"):
        found(tmp_path, two, output="scores")
