"""Which ONNX files can be served as classifiers, where their logits are, and what the others are told."""

import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo import STARTER, scan
from jetsel.zoo.classifier import Classifier, classifier_of
from jetsel.zoo.onnx_model import model_in, read_model
from tests.contract.tiny import HEIGHT_PX, WIDTH_PX
from tests.unit.zoo.making import field
from tests.unit.zoo.networks import network

SOFTMAX = ("Softmax", "scores", "shares")
SIGMOID = ("Sigmoid", "scores", "s")
NEGATIVE = [("Neg", "scores", "minus"), ("Exp", "minus", "e_minus"), ("Add", "one e_minus", "plus")]
OPEN = ("n", 3, "h", "w")


def found(content: bytes, input_px: tuple[int, int] | None = None, output: str | None = None) -> Classifier:
    return classifier_of(model_in(content, "net.onnx"), "net.onnx", 3, input_px, output)


def test_the_size_is_the_files_or_the_owners() -> None:
    fixed = found(network())
    assert (fixed.image.height_px, fixed.image.width_px) == (HEIGHT_PX, WIDTH_PX)
    chosen = found(network(sides=OPEN), (64, 48))
    assert (chosen.image.width_px, chosen.image.height_px) == (64, 48)
    assert found(network(), (WIDTH_PX, HEIGHT_PX)) == fixed


def test_the_logits_are_the_output_called_so_or_the_only_one_or_the_one_named() -> None:
    named = found(network(("Identity", "scores", "logits"), outputs=["scores", "logits"]))
    assert (named.logits, named.changes) == ("logits", ())
    only = found(network())
    assert (only.logits, only.changes) == ("scores", ("its tensor scores is the output logits",))
    assert found(network(("Identity", "flat", "embedding"), outputs=["scores", "embedding"])).logits == "scores"
    assert found(network(SOFTMAX, outputs=["shares"]), output="scores").logits == "scores"
    inside = network(("Identity", "scores", "logits"), ("Softmax", "logits", "shares"), outputs=["shares"])
    assert (found(inside).logits, found(inside).changes) == ("logits", ("its tensor logits is the output logits",))


PROBABILITIES: dict[str, list[tuple[str, str, str]]] = {
    "behind Unsqueeze, Transpose and Squeeze": [
        SOFTMAX,
        ("Unsqueeze", "shares last", "u"),
        ("Transpose", "u", "turned"),
        ("Squeeze", "u last", "end"),
    ],
    "a tanh": [("Tanh", "scores", "t"), ("Mul", "hundred t", "end")],
    "of its logarithm": [("LogSoftmax", "scores", "log"), ("Exp", "log", "end")],
    "the classes sorted": [("TopK", "scores three", "end numbers")],
    "a constant first": [SIGMOID, ("Mul", "hundred s", "end")],
    "a constant that is computed": [SIGMOID, ("Sqrt", "hundred", "ten"), ("Mul", "ten s", "end")],
    "rounded": [SOFTMAX, ("Mul", "shares hundred", "percent"), ("Round", "percent", "end")],
    "behind a ReLU": [SIGMOID, ("Relu", "s", "r"), ("Mul", "r hundred", "end")],
    "no less than": [SIGMOID, ("Max", "s step", "r"), ("Mul", "r hundred", "end")],
    "above a threshold": [SIGMOID, ("Greater", "s a_half", "c"), ("Where", "c hundred none", "end")],
    "a softmax and a sigmoid": [SOFTMAX, SIGMOID, ("Add", "shares s", "sum"), ("Mul", "hundred sum", "end")],
    "an error function": [("Erf", "scores", "end")],
    "a softsign": [("Softsign", "scores", "end")],
    "of length 1": [("LpNormalization", "scores", "end")],
    "the logarithm of a sigmoid": [SIGMOID, ("Log", "s", "end")],
}


@pytest.mark.parametrize("case", PROBABILITIES)
def test_probabilities_are_refused_with_the_tensor_that_can_be_served_instead(case: str) -> None:
    """By the nodes that make them: the tensor named is served, and nothing else is put in its place."""
    tail = PROBABILITIES[case]
    content = network(*tail, outputs=tail[-1][2].split()[:1])
    with pytest.raises(ManifestError, match=r"add it with --output \w+$") as raised:
        found(content)
    before = str(raised.value).rpartition(" ")[2]
    expected = {"of its logarithm": "log"}.get(case, "scores")
    assert (before, found(content, output=before).logits) == (expected, expected)


@pytest.mark.parametrize(
    "tail",
    [
        [*NEGATIVE, ("Div", "hundred plus", "end")],
        [*NEGATIVE, ("Reciprocal", "plus", "r"), ("Mul", "hundred r", "end")],
        [("Pow", "euler scores", "power"), ("Add", "power one", "plus"), ("Reciprocal", "plus", "end")],
        [SOFTMAX, ("Gather", "shares order", "end")],
        [SOFTMAX, ("Identity", "flat", "other"), ("Softmax", "other", "o"), ("Concat", "o shares", "end")],
        [SOFTMAX, ("Neg", "shares", "end")],
    ],
)
def test_no_tensor_is_named_whose_classes_may_have_another_order(tail: list[tuple[str, str, str]]) -> None:
    with pytest.raises(ManifestError, match=r"its end comes from .* export it with a number for each class"):
        found(network(*tail, outputs=["end"]))


@pytest.mark.parametrize(
    "tail",
    [
        [("LogSoftmax", "scores", "end")],
        [("Softmax", "scores", "shares"), ("Log", "shares", "end")],
        [("Sigmoid", "scores", "s"), ("Mul", "s scores", "end")],
        [SOFTMAX, ("Clip", "shares", "c"), ("Log", "c", "end")],
        [("Tanh", "flat", "t"), ("MatMul", "t weights", "end")],
        [("Mul", "scores a_half", "h"), ("Erf", "h", "x"), ("Add", "x one", "y"), ("Mul", "scores y", "end")],
        [("Greater", "scores none", "g"), ("Mul", "scores a_half", "h"), ("Where", "g scores h", "end")],
        [("Exp", "scores", "x"), ("ReduceSum", "x classes", "sum"), ("Log", "sum", "l"), ("Sub", "scores l", "end")],
    ],
)
def test_what_could_be_a_probability_by_its_name_alone_is_served(tail: list[tuple[str, str, str]]) -> None:
    """Log-probabilities are logits, and a sigmoid that scales numbers (swish) does not make them probabilities."""
    assert found(network(*tail, outputs=["end"])).logits == "end"


def test_no_model_that_ships_has_an_end_that_is_refused() -> None:
    for model in scan([STARTER]).families["starter"].models:
        assert classifier_of(read_model(model.path), model.manifest.name, 100).logits == "logits"


def test_a_graph_that_onnx_cannot_infer_is_left_to_onnx_runtime() -> None:
    nothing = field(1, field(2, b"logits") + field(4, b"Softmax"))
    assert found(network(outputs=("logits",)) + field(7, nothing)).behind == ()


def test_what_cannot_be_served_names_the_repair() -> None:
    for content, said in (
        (network(inputs=[]), r"\(none\)"),
        (network(sides=("n", 2, 8, 8)), "for images in colour or grey"),
        (network(sides=("n", 18)), r"\(\?, 18\)"),
        (network(sides=("n", 3, 10**6, 10**6)), "at most 4096"),
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
    assert found(two, output="scores").logits == "scores"
