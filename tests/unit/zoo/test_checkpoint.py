"""Tensors come out of a checkpoint as they were saved, and a pickle that names anything else is refused unread."""

import pickle
import struct

import numpy as np
import pytest

from jetsel.zoo.efficientnet_lite import read_tensors

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
    (found,) = read_tensors(checkpoint()).values()
    assert np.array_equal(found, NUMBERS.reshape(2, 3))
    turned = read_tensors(checkpoint(tensor(shape=numbers(3, 2), stride=numbers(1, 3))))
    assert np.array_equal(turned["weight"], NUMBERS.reshape(2, 3).T)
    scalar = read_tensors(checkpoint(tensor(offset=5, shape=b")", stride=b")")))
    assert scalar["weight"] == 5


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (checkpoint(b"cos\nsystem\n(" + text("true") + b"tR"), "os.system, which is not a tensor"),
        (HEAD[:-1] + b"cos\nsystem\n.", "os.system"),
        (checkpoint(b"ctorch.hub\nload\n(tR"), "torch.hub.load"),
    ],
    ids=["in its tensors", "in its facts", "another function of torch"],
)
def test_code_is_never_run(content: bytes, reason: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=reason):
        read_tensors(content)
