"""Few distinct weights: a table for each tensor, and small indices into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from onnx import ModelProto

CLUSTERS = 256  # an index of 8 bits
FEWEST_WEIGHTS = 4 * CLUSTERS  # of a tensor that is worth a table of its own
ROUNDS = 20  # of Lloyd's algorithm


def clustered(model: ModelProto) -> ModelProto:
    """Share weights: each large tensor becomes 8-bit indices and a table of 256 numbers (thesis, section 2.7.1).

    The thesis found no operator that takes small indices; here the graph casts them first, which ONNX Runtime does once
    as it loads the file. So the file is a quarter as large, and runs as before.
    """
    from onnx import ModelProto, TensorProto, helper, numpy_helper

    made = ModelProto()
    made.CopyFrom(model)
    graph, before = made.graph, []
    for tensor in list(graph.initializer):
        numbers = numpy_helper.to_array(tensor)
        if tensor.data_type != TensorProto.FLOAT or numbers.size < FEWEST_WEIGHTS:
            continue
        table, indices = clusters(numbers.ravel())
        name = tensor.name
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(table, f"{name}_table"))
        graph.initializer.append(numpy_helper.from_array(indices.reshape(numbers.shape), f"{name}_indices"))
        before.append(helper.make_node("Cast", [f"{name}_indices"], [f"{name}_rows"], to=TensorProto.INT32))
        before.append(helper.make_node("Gather", [f"{name}_table", f"{name}_rows"], [name]))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend([*before, *nodes])
    return made


def clusters(numbers: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return 256 numbers, and which of them stands for each of (n,): the nearest (Lloyd's algorithm)."""
    half = CLUSTERS // 2
    # Quantiles serve the many weights near 0, even steps the few large ones, which a mean of squares is made of.
    steps = np.linspace(numbers.min(), numbers.max(), CLUSTERS - half)
    table = np.sort(np.concatenate([np.quantile(numbers, np.linspace(0, 1, half)), steps])).astype(np.float32)
    for _ in range(ROUNDS):
        nearest = np.searchsorted((table[1:] + table[:-1]) / 2, numbers)
        counts = np.bincount(nearest, minlength=CLUSTERS)
        sums = np.bincount(nearest, numbers, minlength=CLUSTERS)
        table = np.sort(np.where(counts > 0, sums / np.maximum(counts, 1), table)).astype(np.float32)
    return table, np.searchsorted((table[1:] + table[:-1]) / 2, numbers).astype(np.uint8)
