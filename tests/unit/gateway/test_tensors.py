"""What strangers send as tensors: read as it is meant, or refused with what is meant; nothing else is raised."""

import base64
import json
import struct
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jetsel.base.errors import BadRequestError
from jetsel.gateway.tensors import MOST_IMAGES, read


def request(**tensor: Any) -> dict[str, Any]:
    return {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1]} | tensor]}


def packed(*elements: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(one)) + one for one in elements)


def with_binary(binary: bytes, **tensor: Any) -> tuple[bytes, int]:
    head = json.dumps(request(parameters={"binary_data_size": len(binary)}, **tensor)).encode()
    return head + binary, len(head)


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8))
def test_photographs_come_out_as_they_went_in_binary_and_base64(pictures: list[bytes]) -> None:
    _, binary = read(*with_binary(packed(*pictures), shape=[len(pictures)]))
    assert [bytes(one) for one in binary] == pictures
    data = [base64.b64encode(one).decode() for one in pictures]
    _, plain = read(json.dumps(request(shape=[len(pictures)], data=data)).encode(), None)
    assert plain == pictures


def test_pixels_are_turned_to_bgr_unless_they_are_already() -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(1, 2, 4, 3)
    tensor = {"datatype": "UINT8", "shape": [1, 2, 4, 3]}
    (rgb,) = read(*with_binary(pixels.tobytes(), **tensor))[1]
    assert np.array_equal(rgb, pixels[0][..., ::-1])
    body = request(**tensor, data=pixels.tolist()) | {"parameters": {"channels": "bgr"}}
    (bgr,) = read(json.dumps(body).encode(), None)[1]
    assert np.array_equal(bgr, pixels[0])


@pytest.mark.parametrize(
    ("body", "json_bytes", "words"),
    [
        (b"[" * 100_000, None, "the inference request"),
        (json.dumps(request(datatype="FP32", data=[0.5])).encode(), None, "send BYTES"),
        (json.dumps(request(data=["#"])).encode(), None, "base64"),
        (json.dumps(request(shape=[2], data=["YQ=="])).encode(), None, "2 images, but 1 were sent"),
        (json.dumps(request(shape=[257], data=[""] * 257)).encode(), None, f"send 1 to {MOST_IMAGES}"),
        (json.dumps(request(datatype="UINT8", shape=[1, 1, 1, 3], data=[1, 2, 256])).encode(), None, "0 to 255"),
        (*with_binary(b"\x05\0\0\0abc"), "5 bytes by its length, but 3 follow"),
        (with_binary(packed(b"a"))[0][:-1], with_binary(packed(b"a"))[1], "5 bytes, but 4 follow the JSON"),
    ],
)
def test_what_is_wrong_is_refused_with_what_is_meant(body: bytes, json_bytes: int | None, words: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        read(body, json_bytes)
    assert words in str(caught.value)


def test_what_would_have_no_effect_is_refused_by_name() -> None:
    """Options that Triton knows and this does not, slips, and what contradicts itself."""
    plain = request(data=["YQ=="])
    output = {"name": "label"}
    cases = {
        "`priority`": plain | {"parameters": {"priority": 1}},
        "unknown 'classification'": plain | {"outputs": [output | {"parameters": {"classification": 3}}]},
        "Expected `bool`": plain | {"outputs": [output | {"parameters": {"binary_data": "no"}}]},
        "unknown 'shared_memory_region'": request(data=["YQ=="], parameters={"shared_memory_region": "a"}),
        "`timeout`": plain | {"timeout": 5},
        "`datatyp`": request(data=["YQ=="], datatyp="BYTES"),
        "channels is of pixels": plain | {"parameters": {"channels": "bgr"}},
    }
    for words, body in cases.items():
        with pytest.raises(BadRequestError) as caught:
            read(json.dumps(body).encode(), None)
        assert words in str(caught.value)
    head = json.dumps(plain).encode()
    for sent in ((head + b"more", len(head)), (head, len(head) + 1), with_binary(packed(b"a"), data=["YQ=="])):
        with pytest.raises(BadRequestError, match="binary_data_size"):
            read(*sent)


@given(st.binary(max_size=300), st.one_of(st.none(), st.integers(0, 400)))
def test_arbitrary_bytes_raise_our_error_and_nothing_else(body: bytes, json_bytes: int | None) -> None:
    with pytest.raises(BadRequestError):
        read(body, json_bytes)


def hostile(field: str, value: bytes, *, datatype: str = "BYTES", shape: str = "[1]") -> bytes:
    """A request in which one field of the input is VALUE."""
    fields = {"name": b'"x"', "datatype": json.dumps(datatype).encode(), "shape": shape.encode(), field: value}
    return b'{"inputs":[{%s}]}' % b",".join(b'"%s":%s' % (name.encode(), json) for name, json in fields.items())


MANY = 3_000_000
EMPTY = b"[%s]" % b",".join([b"[]"] * MANY)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (hostile("shape", b"[%s]" % b",".join([b"1000000007"] * 50_000)), "besides its data"),
        (hostile("shape", b"[1,1,1,1,1]"), "length <= 4"),
        (hostile("parameters", b'{"x":%s}' % EMPTY), "besides its data"),
        (b'{"inputs":[%s]}' % b",".join([b"{}"] * MANY), "send one input"),
        (hostile("data", EMPTY), "more than the 1 images"),
        (hostile("data", EMPTY, datatype="UINT8", shape="[1,1000,1000,3]"), "0 to 255"),
        (hostile("data", b"[]", datatype="UINT8", shape="[2147483647,0,0,3]"), "2147483647 images"),
        (b'{"inputs":[],"outputs":[%s]}' % b",".join([b'{"name":"label"}'] * MANY), "send one input"),
    ],
    ids=["shape", "sides", "parameters", "inputs", "images", "levels", "batch", "outputs"],
)
def test_a_long_request_costs_neither_memory_nor_time_beyond_its_own_bytes(body: bytes, words: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadRequestError, match=words):
            read(body, None)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(body) + 1_000_000
    finally:
        tracemalloc.stop()


def test_elements_without_bytes_are_not_counted_beyond_the_shape() -> None:
    with pytest.raises(BadRequestError, match="1 images, but 2 were sent"):
        read(*with_binary(b"\0" * 4_000_000))


def test_pixels_in_json_have_a_bound_below_that_of_a_body() -> None:
    body = hostile("data", b"[%s]" % b",".join([b"0"] * 6_000_000), datatype="UINT8", shape="[1,1000,2000,3]")
    with pytest.raises(BadRequestError, match="binary_data_size"):
        read(body, None)
