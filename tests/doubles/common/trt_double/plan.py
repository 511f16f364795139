"""A plan of the doubles: a magic word, a JSON header that says what it was built for, and the ONNX file itself."""

import hashlib
import json
import struct

import numpy as np

MAGIC = b"ftrtDOUBLE"


class UnreadableModelError(Exception):
    """ONNX Runtime does not read these bytes; the text says why, on one line."""


class Model:
    """An ONNX file: the names, shapes and types of what goes in and out, and its computation."""

    def __init__(self, onnx):
        import onnxruntime  # on demand: a process that only asks for names does not need it

        self.onnx = onnx
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self.session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime's exceptions share no base but this one
            raise UnreadableModelError(str(error).splitlines()[0]) from error
        self.inputs = [_described(value) for value in self.session.get_inputs()]
        self.outputs = [_described(value) for value in self.session.get_outputs()]

    def run(self, feeds, precision):
        """Return the outputs of `feeds`, {name: array}, as a network of this precision computes them.

        FP16 rounds what goes in and out to half precision; an INT8 network's own Q/DQ nodes do what INT8 does.
        """
        rounded = {}
        for described in self.inputs:
            array = feeds[described["name"]]
            if precision == "fp16":
                array = array.astype(np.float16)
            rounded[described["name"]] = array.astype(described["dtype"])
        with np.errstate(over="ignore"):
            found = self.session.run([described["name"] for described in self.outputs], rounded)
            if precision == "fp16":
                found = [array.astype(np.float16) for array in found]
        return found


def _described(value):
    kind = value.type[len("tensor(") : -1]
    kind = {"float": "float32", "double": "float64"}.get(kind, kind)
    shape = [extent if isinstance(extent, int) else -1 for extent in value.shape]
    return {"name": value.name, "shape": shape, "dtype": kind}


def pack(header, onnx):
    """Return the plan's bytes."""
    header = dict(header, onnx_sha256=hashlib.sha256(onnx).hexdigest(), onnx_bytes=len(onnx))
    text = json.dumps(header, sort_keys=True).encode()
    return MAGIC + struct.pack(">I", len(text)) + text + onnx


def unpack(plan):
    """Return (header, onnx); raise ValueError, saying why, where the bytes are no whole plan."""
    plan = bytes(plan)
    start = len(MAGIC) + 4
    if plan[: len(MAGIC)] != MAGIC:
        raise ValueError("magicTag does not match: this is no serialized engine")
    (size_bytes,) = struct.unpack(">I", plan[len(MAGIC) : start].ljust(4, b"\0"))
    header = json.loads(plan[start : start + size_bytes].decode())
    onnx = plan[start + size_bytes :]
    if len(onnx) != header["onnx_bytes"] or hashlib.sha256(onnx).hexdigest() != header["onnx_sha256"]:
        raise ValueError("the serialized engine is truncated or damaged")
    return header, onnx
