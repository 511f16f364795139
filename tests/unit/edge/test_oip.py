"""What is sent to an edge, what its answers become, and that nothing which it says is believed."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.edge.messages import Remote
from jetsel.edge.oip import MOST_CHARACTERS, EdgeAnswerError, check_metadata, decode_reply, encode_request
from jetsel.gateway import tensors

WNIDS = ["n1", "n2", "n3", "n4"]
RANKED = Remote("pets.l", "encoded", "ranked", None, None, WNIDS, None, b"", b"")
LOGITS = Remote("net", "tensor", "logits", "input", "output", WNIDS, None, b"", b"")
METADATA = {
    "inputs": [{"name": "input", "datatype": "FP32", "shape": [-1, 3, 2, 2]}],
    "outputs": [{"name": "output", "datatype": "FP32", "shape": [-1, 4]}],
}


def encode(plain: Any) -> bytes:
    return json.dumps(plain).encode()


def vector(numbers: list[float], **change: Any) -> tuple[bytes, int]:
    """A reply with these numbers as binary, and how long its JSON is."""
    binary = np.array(numbers, "<f4").tobytes()
    output = {"name": "output", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": len(binary)}}
    head = json.dumps({"model_name": "net", "outputs": [output | change]}).encode()
    return head + binary, len(head)


def ranked(*entries: str, **told: Any) -> tuple[bytes, None]:
    outputs = [{"name": "top_k", "datatype": "BYTES", "shape": [1, len(entries)], "data": list(entries)}]
    return json.dumps({"outputs": outputs, "parameters": told}).encode(), None


def test_our_own_gateway_reads_what_is_sent() -> None:
    (head, binary), headers = encode_request(RANKED, b"\xff\xd8photograph", None)
    asked, images = tensors.read(head + binary, int(headers["Inference-Header-Content-Length"]))
    assert [bytes(image) for image in images] == [b"\xff\xd8photograph"]
    assert (asked.parameters.top_k, [wanted.name for wanted in asked.outputs]) == (4, ["top_k"])


def test_a_tensor_is_sent_with_its_shape() -> None:
    (head, binary), headers = encode_request(LOGITS, b"\0" * 48, [1, 3, 2, 2])
    asked = json.loads(head)
    assert headers["Inference-Header-Content-Length"] == str(len(head))
    assert asked["inputs"] == [
        {"datatype": "FP32", "shape": [1, 3, 2, 2], "name": "input", "parameters": {"binary_data_size": len(binary)}}
    ]


def test_a_server_without_the_binary_extension_is_sent_the_same_numbers_as_json() -> None:
    numbers = np.linspace(-1, 1, 12, dtype="<f4")
    (body,), headers = encode_request(LOGITS, numbers.tobytes(), [1, 3, 2, 2], is_binary=False)
    assert headers == {"Content-Type": "application/json"}
    (tensor,) = json.loads(body)["inputs"]
    assert (tensor["name"], tensor["datatype"], tensor["shape"]) == ("input", "FP32", [1, 3, 2, 2])
    assert tensor["data"] == pytest.approx(numbers, abs=1e-7)
    assert len(body) < 12 * len(numbers) + 100, "no digits that mean nothing"


def test_ranked_labels_become_probabilities_of_which_the_others_share_the_rest() -> None:
    numbers, server_ms = decode_reply(RANKED, *ranked("0.7:n3:cat", "0.2:n1:a:b", total_ms=4.5))
    assert numbers == pytest.approx([0.2, 0.05, 0.7, 0.05])
    assert (numbers.dtype, server_ms) == (np.float32, 4.5)


def test_numbers_are_put_where_the_mapping_says() -> None:
    numbers, server_ms = decode_reply(LOGITS, *vector([1, 2, 3, 4]))
    assert numbers.tolist() == [1, 2, 3, 4]
    assert server_ms is None, "it does not say"
    placed = msgspec.structs.replace(LOGITS, places=[3, 1])
    assert decode_reply(placed, *vector([5, 7]))[0].tolist() == [5, 7, 5, 5], (
        "what it does not know is as unlikely as its least"
    )


@pytest.mark.parametrize(
    ("remote", "answer", "words"),
    [
        (RANKED, ranked("0.7:n9:dog"), "not a class of the local family"),
        (RANKED, ranked("0.7:n1:cat", "0.7:n2:dog"), "total probability of 1.4"),
        (RANKED, ranked("nan:n1:cat"), "total probability of nan"),
        (LOGITS, vector([1, 2, 3]), "4 finite numbers are expected"),
        (LOGITS, vector([1, 2, 3, np.inf]), "4 finite numbers are expected"),
        (LOGITS, vector([1, 2, 3, 4], datatype="INT64"), "INT64"),
        (LOGITS, (b"<html>", None), "no logits"),
        (msgspec.structs.replace(LOGITS, output="probabilities"), vector([1, 2, 3, 4]), "did not return probabilities"),
    ],
)
def test_what_is_no_answer_is_refused_with_what_is_wrong(remote: Remote, answer: Any, words: str) -> None:
    with pytest.raises(EdgeAnswerError, match=words):
        decode_reply(remote, *answer)


@pytest.mark.parametrize(
    "answer",
    [
        ranked("0.7:n1:cat", total_ms=10**400),
        vector([1, 2, 3, 4], parameters={"binary_data_size": 10**400}),
        vector([1, 2, 3, 4], parameters={}, data=[10**400] * 4),
    ],
)
def test_numbers_without_end_are_no_answer(answer: Any) -> None:
    with pytest.raises(EdgeAnswerError, match="OverflowError"):
        decode_reply(RANKED if answer[1] is None else LOGITS, *answer)


def test_what_is_said_of_an_answer_is_short() -> None:
    with pytest.raises(EdgeAnswerError) as caught:
        decode_reply(LOGITS, *vector([1, 2, 3, 4], datatype="x" * 1_000_000))
    assert len(str(caught.value)) == MOST_CHARACTERS


@given(st.sampled_from([RANKED, LOGITS]), st.binary(max_size=200), st.none() | st.integers(0, 300))
def test_arbitrary_answers_raise_our_error_alone(remote: Remote, body: bytes, json_bytes: int | None) -> None:
    with pytest.raises(EdgeAnswerError):
        decode_reply(remote, body, json_bytes)


def test_a_model_that_is_not_as_it_is_mapped_is_refused_at_connection() -> None:
    check_metadata(RANKED, encode(tensors.metadata()))
    assert (
        check_metadata(msgspec.structs.replace(LOGITS, input_name=None, output_name=None), encode(METADATA)) == LOGITS
    ), "named by it"
    with pytest.raises(EdgeAnswerError, match="takes FP32, but the configuration sends it BYTES"):
        check_metadata(msgspec.structs.replace(LOGITS, input="encoded"), encode(METADATA))
    with pytest.raises(EdgeAnswerError, match="returns 4 numbers, but has 3 labels"):
        check_metadata(msgspec.structs.replace(LOGITS, wnids=WNIDS[:3]), encode(METADATA))
    with pytest.raises(EdgeAnswerError, match="no input any, output logits"):
        check_metadata(msgspec.structs.replace(LOGITS, input_name=None, output_name="logits"), encode(METADATA))
    for lie in ({}, {"inputs": [], "outputs": []}, {"inputs": 7, "outputs": None}, []):
        with pytest.raises(EdgeAnswerError):
            check_metadata(LOGITS, encode(lie))
    for odd in (b"", b"[" * 1_000_000, b"{", b"\xff"):
        with pytest.raises(EdgeAnswerError):
            check_metadata(LOGITS, odd)
