"""The builder: from a network and its configuration to a plan, with the refusals that TensorRT has."""

import hashlib
import os
import time

import numpy as np

from trt_double import plan
from trt_double.board import RULES, board, fault
from trt_double.bound import Bound
from trt_double.config import IBuilderConfig, IOptimizationProfile
from trt_double.network import INetworkDefinition
from trt_double.values import IHostMemory, Severity, numpy_type

LAYERS = 4  # that every network is timed as


class BuildError(Exception):
    """Why a build ends without an engine, in the words of the log."""


class Builder(Bound):
    """Makes networks, configurations and engines."""

    def __init__(self, logger):
        if fault("cuda_initialization"):
            logger.log(Severity.ERROR, "CUDA initialization failure with error: 35")
            raise TypeError("pybind11::init(): factory function returned nullptr")
        self._logger = logger

    def _header(self):
        return {
            "tensorrt": RULES["version"],
            "gpu": board("gpu"),
            "compute_capability": board("compute_capability"),
        }

    platform_has_fast_fp16 = property(lambda _: board("fast_fp16"))

    def create_network(self, flags=0):
        return INetworkDefinition(flags)

    def create_builder_config(self):
        return IBuilderConfig(self._logger, self._header())

    def create_optimization_profile(self):
        return IOptimizationProfile()

    def build_serialized_network(self, network, config):
        """Return the plan, None where the network cannot be built."""
        built = self._build(network, config)
        return None if built is None else IHostMemory(built)

    def _build(self, network, config):
        signal = fault("build_signal")
        if signal:
            os.kill(os.getpid(), signal)
        try:
            header = self._checked(network, config)
            self._time_layers(network, config, header["precision"])
            if fault("build_none"):
                raise BuildError("Internal error: could not find any implementation for node MatMul_0")
        except BuildError as error:
            self._logger.log(Severity.ERROR, str(error))
            return None
        self._logger.log(Severity.INFO, "Total Device Persistent Memory: {}".format(header["device_memory"]))
        return plan.pack(header, network._model.onnx)

    def _checked(self, network, config):
        """Return the plan's header; raise BuildError where TensorRT would refuse."""
        if config._workspace_bytes < (board("workspace_needed_bytes") or 0):
            raise BuildError("Could not find any implementation for node MatMul_0: try increasing the workspace size")
        profiles = self._profiles(network, config)
        header = dict(self._header(), profiles=profiles, precision=self._precision(network, config))
        header["tensors"] = [_tensor(tensor) for tensor in network._inputs + network._outputs]
        header["device_memory"] = board("scratch_bytes") or _scratch_bytes(header)
        return header

    def _profiles(self, network, config):
        if config._profiles:
            return [profile._shapes for profile in config._profiles]
        if any(-1 in tensor._shape for tensor in network._inputs):
            raise BuildError("Network has dynamic or shape inputs, but no optimization profile has been defined.")
        return [{tensor._name: [tensor._shape] * 3 for tensor in network._inputs}]

    def _precision(self, network, config):
        fp16, int8 = config._has("FP16"), config._has("INT8")
        if network._strongly_typed:
            if fp16 or int8:
                raise BuildError("Precision flags cannot be set for a strongly typed network")
            return "as typed"
        if int8 and not board("fast_int8"):
            raise BuildError("Network needs native INT8 and platform does not have native INT8 support")
        if network._is_quantized() and not int8:
            raise BuildError("Q/DQ layers need BuilderFlag::kINT8")
        if int8 and not network._is_quantized():
            raise BuildError("Calibration failure occurred with no scaling factors detected")
        return "int8" if int8 else "fp16" if fp16 else "fp32"

    def _time_layers(self, network, config, precision):
        known = config._cache._entries if config._cache is not None else {}
        key = f"{hashlib.sha256(network._model.onnx).hexdigest()} {precision}"
        for layer in range(LAYERS):
            if key in known:
                self._logger.log(Severity.VERBOSE, f"layer {layer}: found in the timing cache")
            else:
                self._logger.log(Severity.VERBOSE, f"layer {layer}: timing tactics")
                time.sleep((board("build_ms") or 0) / 1000.0 / LAYERS)
        known[key] = 0.01


def _tensor(tensor):
    return {
        "name": tensor._name,
        "shape": list(tensor._shape),
        "dtype": np.dtype(numpy_type(tensor._dtype)).name,
        "input": tensor._is_input,
    }


def _scratch_bytes(header):
    largest = max(int(np.prod(shapes[2])) for profile in header["profiles"] for shapes in profile.values())
    return -(-4 * 4 * largest // 256) * 256
