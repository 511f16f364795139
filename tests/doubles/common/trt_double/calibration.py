"""INT8 calibration as TensorRT asks for it: batches in GPU memory until there are no more."""

import numpy as np

from trt_double.device import GPU
from trt_double.values import Severity


class CalibrationError(Exception):
    """Why the calibration failed, in the words of the log."""


def scales(config, network, logger):
    """Return {input: the largest magnitude seen}; raise CalibrationError where none was."""
    calibrator = config._calibrator
    names = [tensor._name for tensor in network._inputs]
    shapes, largest = _shapes(config, network), {}
    calibrator.get_batch_size()
    assert calibrator.read_calibration_cache() is None
    while True:
        pointers = calibrator.get_batch(list(names))
        if not pointers:
            break
        for name, pointer in zip(names, pointers):  # noqa: B905 - Python 3.6
            magnitude = float(np.abs(_values(int(pointer), shapes[name])).max())
            largest[name] = max(magnitude, largest.get(name, 0.0))
    if not largest:
        raise CalibrationError("Calibration failure occurred with no scaling factors detected")
    calibrator.write_calibration_cache(memoryview(b"TRT-"))
    logger.log(Severity.INFO, "Calibrated")
    return largest


def _shapes(config, network):
    shapes = {}
    for tensor in network._inputs:
        shapes[tensor._name] = tensor._shape
        if -1 in tensor._shape:
            shapes[tensor._name] = config._profiles[0]._shapes[tensor._name][1]
    return shapes


def _values(pointer, shape):
    GPU.drain()  # what copies the batch may still be queued; TensorRT calibrates on the default stream
    return GPU.memory(pointer, int(np.prod(shape)) * 4).view(np.float32)
