"""Tensors come out of a checkpoint as they were saved, and a pickle that names anything else is refused unread."""

import pickle
import struct
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo.checkpoint import tensors_in

NUMBERS = np.arange(6, dtype="<f4")
HEAD = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
ORDERED = b"ccollections\nOrderedDict\n)R"
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"


def text(word: str) -> bytes:
    return b"X" + struct.pack("<I", len(word)) + word.encode()


def number(value: int) -> bytes:
    return b"J" + struct.pack("<i", value)


def numbers(*values: int) -> bytes:
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(offset: int = 0, shape: bytes = numbers(2, 3), stride: bytes = numbers(3, 1), count: int = 6) -> bytes:
    """How torch pickles one: a call of _rebuild_tensor_v2 with a storage by its key."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("7") + text("cpu") + number(count) + b"NtQ"
    return REBUILD + b"(" + storage + number(offset) + shape + stride + b"\x89" + ORDERED + b"tR"


def checkpoint(value: bytes = tensor(), *, numbers: bytes = NUMBERS.tobytes(), count: int = 6) -> bytes:
    """A whole file with one tensor, called `weight`."""
    state = b"\x80\x02" + ORDERED + b"(" + text("weight") + value + b"u."
    return HEAD + state + pickle.dumps(["7"], 2) + struct.pack("<q", count) + numbers


def test_tensors_are_those_that_were_saved() -> None:
    (found,) = tensors_in(checkpoint(), "net.pth").values()
    assert np.array_equal(found, NUMBERS.reshape(2, 3))
    turned = tensors_in(checkpoint(tensor(shape=numbers(3, 2), stride=numbers(1, 3))), "net.pth")
    assert np.array_equal(turned["weight"], NUMBERS.reshape(2, 3).T)
    scalar = tensors_in(checkpoint(tensor(offset=5, shape=b")", stride=b")")), "net.pth")
    assert scalar["weight"] == 5


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "runs code": (lambda: checkpoint(b"cos\nsystem\n(" + text("true") + b"tR"), "os.system, which is not a tensor"),
    "runs code in its facts": (lambda: HEAD[:-1] + b"cos\nsystem\n.", "os.system"),
    "another function of torch": (lambda: checkpoint(b"ctorch.hub\nload\n(tR"), "torch.hub.load"),
    "other values": (lambda: checkpoint(number(3)), "other things than tensors"),
    "half of it": (lambda: checkpoint()[:-13], "buffer"),
    "no checkpoint": (lambda: b"PK\3\4 a newer format", "not a checkpoint of torch's legacy format"),
    "outside of its storage": (lambda: checkpoint(tensor(offset=1)), "outside of its storage"),
    "before its storage": (lambda: checkpoint(tensor(offset=-1)), "outside of its storage"),
    "one number many times": (
        lambda: checkpoint(tensor(shape=numbers(9999, 9999), stride=numbers(0, 0))),
        "outside of its storage",
    ),
    "another count": (lambda: checkpoint(count=7), "7 numbers instead of 6"),
    "a huge count": (lambda: checkpoint(tensor(count=1 << 30), count=1 << 30), "buffer"),
}


def test_what_a_few_bytes_have_allocated_is_bounded() -> None:
    tracemalloc.start()
    with pytest.raises(ManifestError, match="pickle table is larger than the file"):
        tensors_in(HEAD + b"\x80\x02Nr" + struct.pack("<I", 2**24) + b".", "net.pth")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize("kind", list(REFUSED))
def test_what_is_no_such_file_is_refused(kind: str) -> None:
    made, reason = REFUSED[kind]
    with pytest.raises(ManifestError, match=reason) as error:
        tensors_in(made(), "net.pth")
    assert str(error.value).startswith("net.pth: ")
