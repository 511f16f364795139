"""Which ONNX files can be served as classifiers, where their logits are, and what the others are told."""

from __future__ import annotations

import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo.classifier import Classifier, classifier_of
from jetsel.zoo.onnx_model import model_in
from tests.contract.tiny import HEIGHT_PX, WIDTH_PX
from tests.unit.zoo.making import field
from tests.unit.zoo.networks import FLOAT16, network

SOFTMAX = ("Softmax", "scores", "shares")
OPEN = ("n", 3, "h", "w")


def found(content: bytes, input_px: tuple[int, int] | None = None, output: str | None = None) -> Classifier:
    return classifier_of(model_in(content, "net.onnx"), "net.onnx", input_px, output)


def test_the_size_is_the_files_or_the_owners() -> None:
    fixed = found(network())
    assert (fixed.height_px, fixed.width_px) == (HEIGHT_PX, WIDTH_PX)
    chosen = found(network(sides=OPEN), (64, 48))
    assert (chosen.width_px, chosen.height_px) == (64, 48)
    assert found(network(), (WIDTH_PX, HEIGHT_PX)) == fixed


def test_the_logits_are_the_output_called_so_or_the_only_one_or_the_one_named() -> None:
    named = found(network(("Identity", "scores", "logits"), outputs=["scores", "logits"]))
    assert (named.logits, named.answers_logits) == ("logits", True)
    only = found(network())
    assert (only.logits, only.answers_logits) == ("scores", False)
    assert found(network(("Identity", "flat", "embedding"), outputs=["scores", "embedding"])).logits == "scores"
    assert found(network(SOFTMAX, outputs=["shares"]), output="scores").logits == "scores"
    inside = network(("Identity", "scores", "logits"), ("Softmax", "logits", "shares"), outputs=["shares"])
    assert (found(inside).logits, found(inside).answers_logits) == ("logits", False)


def test_what_a_softmax_is_made_from() -> None:
    nothing = field(1, field(2, b"logits") + field(4, b"Softmax"))
    assert found(network(outputs=("logits",)) + field(7, nothing)).before_softmax is None
    assert found(network(SOFTMAX, outputs=["shares"])).before_softmax == "scores"
    assert found(network()).before_softmax is None


def test_what_cannot_be_served_names_the_repair() -> None:
    for content, said in (
        (network(inputs=["images", "sizes"]), "takes 2 inputs"),
        (network(inputs=[]), r"\(none\)"),
        (network(elem_type=FLOAT16), "not of float32"),
        (network(sides=("n", HEIGHT_PX, WIDTH_PX, 3)), "channels first"),
        (network(sides=("n", "h", "w", 3)), "channels first"),
        (network(sides=("n", 1, 8, 8)), "for colour images"),
        (network(sides=("n", 18)), r"\(\?, 18\)"),
        (network(sides=(4, 3, 2, 3)), "takes exactly 4 images"),
        (network(sides=("n", 3, 10**6, 10**6)), "at most 4096"),
        (network(sides=OPEN), "--input 224x224"),
        (network(SOFTMAX, outputs=["scores", "shares"]), "--output scores"),
        (network(outputs=[]), r"\(none\)"),
    ):
        with pytest.raises(ManifestError, match=said) as raised:
            found(content)
        assert str(raised.value).startswith("net.onnx: ")


def test_what_the_owner_says_must_be_so() -> None:
    with pytest.raises(ManifestError, match="its input is 3 x 2 px, not 224 x 224: leave --input out"):
        found(network(), (224, 224))
    with pytest.raises(ManifestError, match="computes no 'probs'; its outputs are scores"):
        found(network(), output="probs")
    two = network(("Identity", "scores", "logits"), outputs=["scores", "logits"])
    with pytest.raises(ManifestError, match="calls another tensor logits already"):
        found(two, output="scores")
