"""Read EfficientNet-Lite's published tensors without torch, and build its ONNX graph from them.

The architecture is EfficientNet (Tan and Le, ICML 2019, Table 1) with the changes of the Lite variants (TensorFlow's
tpu repository, models/official/efficientnet/lite): no squeeze-and-excitation, ReLU6 instead of swish, and first and
last stages with fixed width and depth.

The tensors are in torch's legacy format (torch.serialization._legacy_save): four pickles (a magic number, a version,
facts of the machine, the tensors, which name their storages), a pickled list of those storages, and each storage's
numbers, little-endian. Verify the file's hash first: only what a pickle may run is checked here.
"""

from __future__ import annotations

import hashlib
import io
import math
import pickle
import struct
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

from jetsel.zoo.export import OPSET

RECIPE = "efficientnet-lite graph 1"  # raise the number with each change of what the graph computes from its tensors

_EPSILON = 1e-3  # of batch normalisation, as in the reference
_IR_VERSION = 8  # the newest that ONNX Runtime 1.10, the last for Python 3.6, loads

Tensors = Mapping[str, NDArray[Any]]
_STAGES = ((1, 1), (2, 2), (2, 2), (3, 2), (3, 1), (4, 2), (1, 1))
"""Number of blocks and stride of the first block of each row of Table 1; the tensors' shapes give the kernels."""

DEPTHS = {"lite0": 1.0, "lite1": 1.1, "lite2": 1.2}  # factor of the number of blocks; tensors' shapes give the widths
_NAMES = {
    ("collections", "OrderedDict"): OrderedDict,
    ("torch._utils", "_rebuild_tensor_v2"): lambda *parts: parts,  # (key, dtype) of a storage, offset, shape, stride...
    ("torch", "FloatStorage"): np.dtype("<f4"),
    ("torch", "LongStorage"): np.dtype("<i8"),
}
"""Module and name of a function or class in the pickles -> what _TensorUnpickler uses instead."""


class _TensorUnpickler(pickle.Unpickler):
    """Unpickles tensors, and refuses every other class and function without importing it."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what replaces a class or function that tensors need; raises UnpicklingError for any other."""
        if (module, name) not in _NAMES:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is not a tensor")
        return _NAMES[module, name]

    def persistent_load(self, pid: Any) -> tuple[str, np.dtype[Any]]:
        """Return a storage's key and dtype. pid: tuple of "storage", dtype, key, and more."""
        _, dtype, key, *_ = pid
        return key, dtype


def read_tensors(content: bytes) -> dict[str, NDArray[Any]]:
    """Return the tensors, float32 or int64, by name, in a verified file's content. The module describes the format."""
    file = io.BytesIO(content)
    *_, tensor_parts, storage_keys = [_TensorUnpickler(file).load() for _ in range(5)]
    dtypes = dict(storage for storage, *_ in tensor_parts.values())
    storages, tensors = {}, {}
    for key in storage_keys:
        (count,) = struct.unpack("<q", file.read(8))
        storages[key] = np.frombuffer(file.read(count * dtypes[key].itemsize), dtypes[key])
    for name, ((key, dtype), offset, shape, stride, *_) in tensor_parts.items():
        strides_bytes = [step * dtype.itemsize for step in stride]
        tensors[name] = np.array(as_strided(storages[key][offset:], shape, strides_bytes))
    return tensors


def tensors_sha256(tensors: Tensors) -> str:
    """Return the SHA-256 of all names, types, shapes and values, in hexadecimal, whatever file the tensors were in."""
    hasher = hashlib.sha256()
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        hasher.update(f"{name} {values.dtype.str} {values.shape}\n".encode())
        hasher.update(values.tobytes())
    return hasher.hexdigest()


def graph_of(tensors: Tensors, variant: str) -> ModelProto:
    """Return the ONNX model: images (n, 3, height, width) of any size -> logits (n, 1000) and embedding (n, 1280).

    Batch normalisations are folded into the convolutions. Padding is SAME, which depends on the image's size, so one
    graph serves every size. variant: key of DEPTHS. Raises KeyError if the tensors are of another architecture.
    """
    return _GraphBuilder(tensors).model(DEPTHS[variant])


class _GraphBuilder:
    """Builds the ONNX graph from tensors: the methods add nodes and constants, and return the output's name."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._channels: dict[str, int] = {}  # output -> channels, to see whether a block can add its input to it

    def model(self, depth_factor: float) -> ModelProto:
        """Return the whole graph. depth_factor: factor of the number of blocks in each stage."""
        for name, value in (("zero", 0.0), ("six", 6.0)):
            self._add_constant(name, np.array(value))
        last_tensor = self._convolution("input", "_conv_stem", "_bn0", stride=2)
        block_number = 0
        for stage, (blocks, stride) in enumerate(_STAGES):
            is_fixed = stage in (0, len(_STAGES) - 1)
            for block in range(blocks if is_fixed else math.ceil(depth_factor * blocks)):
                last_tensor = self._block(last_tensor, f"_blocks.{block_number}.", stride if block == 0 else 1)
                block_number += 1
        last_tensor = self._convolution(last_tensor, "_conv_head", "_bn1")
        self._add_node("GlobalAveragePool", [last_tensor], "pooled")
        self._add_node("Flatten", ["pooled"], "embedding")
        weights = [self._add_constant(name, self._tensors[name]) for name in ("_fc.weight", "_fc.bias")]
        self._add_node("Gemm", ["embedding", *weights], "logits", transB=1)
        classes, width = self._tensors["_fc.weight"].shape
        outputs = [("logits", ["n", classes]), ("embedding", ["n", width])]
        graph = helper.make_graph(
            self._nodes,
            "efficientnet-lite",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 3, "height", "width"])],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs],
            self._constants,
        )
        onnx_model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="jetsel")
        onnx_model.ir_version = _IR_VERSION
        checker.check_model(onnx_model)
        return onnx_model

    def _block(self, input_name: str, prefix: str, stride: int) -> str:
        """Add an inverted residual block: widen, filter each channel, narrow, and add the input if the shapes agree."""
        last_tensor, expand = input_name, f"{prefix}_expand_conv"
        if f"{expand}.weight" in self._tensors:
            last_tensor = self._convolution(last_tensor, expand, f"{prefix}_bn0")
        last_tensor = self._convolution(last_tensor, f"{prefix}_depthwise_conv", f"{prefix}_bn1", stride=stride)
        last_tensor = self._convolution(last_tensor, f"{prefix}_project_conv", f"{prefix}_bn2", is_bounded=False)
        if stride == 1 and self._channels[input_name] == self._channels[last_tensor]:
            self._channels[f"{prefix}sum"] = self._channels[input_name]
            return self._add_node("Add", [last_tensor, input_name], f"{prefix}sum")
        return last_tensor

    def _convolution(
        self, input_name: str, name: str, normalisation: str, *, stride: int = 1, is_bounded: bool = True
    ) -> str:
        """Add the convolution `name` with a batch normalisation folded in, then ReLU6 if `is_bounded`."""
        mean, variance, gain, shift = (
            self._tensors[f"{normalisation}.{part}"].astype(np.float64)
            for part in ("running_mean", "running_var", "weight", "bias")
        )
        scale = gain / np.sqrt(variance + _EPSILON)
        kernel = self._tensors[f"{name}.weight"]
        folded = kernel.astype(np.float64) * scale[:, None, None, None]
        self._channels[name] = self._channels[f"{name}.bounded"] = len(kernel)
        parameters = {f"{name}.weight": folded, f"{name}.bias": shift - mean * scale}
        self._add_node(
            "Conv",
            [input_name, *(self._add_constant(key, values) for key, values in parameters.items())],
            name,
            kernel_shape=kernel.shape[2:],
            strides=[stride, stride],
            group=len(kernel) if kernel.shape[1] == 1 else 1,  # one filter for each channel
            auto_pad="SAME_UPPER",
        )
        return self._add_node("Clip", [name, "zero", "six"], f"{name}.bounded") if is_bounded else name

    def _add_constant(self, name: str, values: NDArray[Any]) -> str:
        """Add a float32 constant and return its name."""
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(values, np.float32), name))
        return name

    def _add_node(self, operator: str, input_names: list[str], output_name: str, **attributes: Any) -> str:
        """Add a node and return the name of its output, which is the node's name too."""
        self._nodes.append(helper.make_node(operator, input_names, [output_name], name=output_name, **attributes))
        return output_name
