"""Write a model's half-precision twin, in a process of its own: `python -m jetsel.engines.building.half SOURCE TARGET`.

A strongly typed network computes in the types that its ONNX file has. This imports the onnx package, which no process
that serves does.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jetsel.engines.building.preparing import DONE


def convert(source: Path, target: Path) -> None:
    """Write `source` with weights and arithmetic in float16, its inputs and outputs in float32, to `target`.

    What float16 does badly stays in float32, as ONNX Runtime's own list of operators has it.
    """
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    model = OnnxModel(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True))
    model.topological_sort()  # the conversion puts the input's cast last
    onnx.checker.check_model(model.model)
    onnx.save(model.model, str(target))


if __name__ == "__main__":
    convert(*map(Path, sys.argv[1:]))
    print(DONE)
