"""Whether an ONNX file's weights lie elsewhere is read from its bytes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jetsel.zoo.onnx_file import fields, read_file, refers_outside
from tests.unit.zoo.making import EXTERNAL, LOCATION, TENSOR, WHOLE, field, onnx_file


def external(tmp_path: Path, content: bytes) -> bool:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    return refers_outside(read_file(path))


def test_fields_of_a_message_worked_by_hand() -> None:
    # Field 1, a number: key 0x08, 300 = 0b10_0101100 -> 0xAC 0x02. Field 2, bytes: key 0x12, length 3.
    # Field 3, 64 bits: key 0x19. Field 4, 32 bits: key 0x25.
    message = bytes([0x08, 0xAC, 0x02, 0x12, 3]) + b"abc" + bytes([0x19]) + b"12345678" + bytes([0x25]) + b"1234"
    assert list(fields(memoryview(message))) == [(1, 300), (2, b"abc"), (3, b"12345678"), (4, b"1234")]


def test_weights_inside_the_file(tmp_path: Path) -> None:
    assert not external(tmp_path, WHOLE)


@pytest.mark.parametrize(
    "graph",
    [
        field(5, EXTERNAL),
        field(5, TENSOR) + field(5, TENSOR + LOCATION),
        field(5, TENSOR + field(14, 1)),
        field(1, field(5, field(5, EXTERNAL))),  # the value of a Constant node
        field(1, field(5, field(6, field(5, EXTERNAL)))),  # an initializer of a branch of an If node
        field(15, field(1, EXTERNAL)),  # a sparse initializer's values
    ],
    ids=["external", "second", "place without a file", "constant", "branch", "sparse"],
)
def test_weights_elsewhere_are_found_wherever_a_tensor_may_stand(tmp_path: Path, graph: bytes) -> None:
    assert external(tmp_path, onnx_file(graph))


def test_weights_elsewhere_are_found_in_functions_and_in_a_second_graph(tmp_path: Path) -> None:
    constant = field(5, field(5, EXTERNAL))
    assert external(tmp_path, WHOLE + field(25, field(7, constant)))
    assert external(tmp_path, WHOLE + field(7, field(5, EXTERNAL)))  # protobuf merges the two


def test_a_graph_nested_deeper_than_python_recurses(tmp_path: Path) -> None:
    graph = field(5, EXTERNAL)
    for _ in range(2000):
        graph = field(1, field(5, field(6, graph)))
    assert external(tmp_path, onnx_file(graph))


@pytest.mark.parametrize(
    "content",
    [b"", b"\x08\x07", b"not a model", WHOLE[:-1], b"\x0b", b"\xff" * 11, field(7, b"\x80")],
    ids=["empty", "no graph", "text", "cut short", "a group", "endless number", "cut inside"],
)
def test_what_is_no_onnx_file_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(ValueError):
        external(tmp_path, content)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=60), cut=st.integers(0, len(WHOLE)))
def test_damaged_files_are_read_or_refused_and_nothing_else(tmp_path: Path, content: bytes, cut: int) -> None:
    with contextlib.suppress(ValueError):
        assert external(tmp_path, WHOLE[:cut] + content) in (True, False)
