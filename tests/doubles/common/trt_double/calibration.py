"""INT8 calibration as TensorRT asks for it: the cache first, else batches in GPU memory until there are no more."""

import binascii
import struct

import numpy as np

from trt_double.board import fault
from trt_double.device import GPU, CudaError
from trt_double.values import Severity


class CalibrationError(Exception):
    """Why the calibration failed, in the words of the log."""


def scales(config, network, version, logger):
    """Return {input: the largest magnitude seen}; raise CalibrationError where none was."""
    calibrator = config._values["int8_calibrator"]
    title = "TRT-{}-EntropyCalibration2".format(version.replace(".", ""))
    known = _read(calibrator.read_calibration_cache(), title, logger)
    names = [tensor._name for tensor in network._inputs]
    if known is not None and set(names) <= set(known):
        logger.log(Severity.INFO, "Calibration table has been read from the cache")
        return known
    shapes = _shapes(config, network)
    largest = {}
    GPU.check()
    calibrator.get_batch_size()
    count = 0
    while not fault("calibrate_none"):
        pointers = calibrator.get_batch(list(names))
        if not pointers:
            break
        for name, pointer in zip(names, pointers):  # noqa: B905 - Python 3.6
            magnitude = float(np.abs(_values(int(pointer), shapes[name])).max())
            largest[name] = max(magnitude, largest.get(name, 0.0))
        logger.log(Severity.INFO, f"  Calibrated batch {count}")
        count += 1
    if not largest:
        raise CalibrationError("Calibration failure occurred with no scaling factors detected")
    lines = [title] + [f"{name}: {_hex(largest[name] / 127)}" for name in names]
    table = "\n".join([*lines, ""]).encode()
    calibrator.write_calibration_cache(memoryview(table))
    return _read(table, title, logger)  # rounded as the next build will read it


def _shapes(config, network):
    profile = config._calibration_profile or (config._profiles[0] if config._profiles else None)
    shapes = {}
    for tensor in network._inputs:
        shapes[tensor._name] = tensor._shape
        if -1 in tensor._shape:
            if profile is None or tensor._name not in profile._shapes:
                raise CalibrationError(f"{tensor._name}: dynamic input without a calibration profile")
            shapes[tensor._name] = profile._shapes[tensor._name][1]
    return shapes


def _values(pointer, shape):
    GPU.drain()  # what copies the batch may still be queued; TensorRT calibrates on the default stream
    try:
        return GPU.memory(pointer, int(np.prod(shape)) * 4).view(np.float32)
    except CudaError as error:
        raise CalibrationError(f"Calibration read GPU memory that is not there: {error}") from error


def _read(cache, title, logger):
    """Return the scales of a cache, None where there is none or it was made by another version."""
    if cache is None or not bytes(cache):
        return None
    lines = bytes(cache).decode("ascii", "replace").splitlines()
    if lines[0] != title:
        logger.log(Severity.WARNING, "The calibration cache was made by another version, calibrating again")
        return None
    pairs = [line.split(": ") for line in lines[1:] if ": " in line]
    return {name: struct.unpack(">f", binascii.unhexlify(value))[0] * 127 for name, value in pairs}


def _hex(scale):
    return binascii.hexlify(struct.pack(">f", scale)).decode()
