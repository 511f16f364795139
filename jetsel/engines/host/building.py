"""Builds one TensorRT engine from one ONNX file, with the calls that this TensorRT version has."""

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Any, Dict, List, Optional

from .messages import Refusal


class EngineBuild:
    """One build, by a request of kind "build" (docs/engine-host.md). trt: the module; log, logger: see TensorRTLog."""

    def __init__(self, trt: Any, log: Any, logger: Any, request: Dict[str, Any]) -> None:
        self._trt, self._log, self._logger, self._request = trt, log, logger, request
        self.notes: List[str] = []  # sentences about the build for the model's owner

    def run(self) -> Dict[str, Any]:
        """Build the engine, write it to the plan file, and return the reply's fields; raises Refusal."""
        began = time.monotonic()
        self._log.clear()
        try:
            self._builder = self._trt.Builder(self._logger)
        except TypeError as error:  # pybind raises it if TensorRT returns nothing
            raise Refusal("build-failed", f"TensorRT cannot create a builder: {self._log.reason()} ({error})") from None
        self._config = self._builder.create_builder_config()
        network = self._parse()
        self._set_input_shape(network)
        self._set_precision()
        self._limit_workspace()
        has_timings = self._use_timings()
        plan = self._build(network)
        if has_timings:
            self._save_timings(self._config.get_timing_cache().serialize())
        path = self._request["plan"]
        try:
            Path(path).write_bytes(plan)
        except OSError as error:
            raise Refusal("build-failed", f"{path} cannot be written: {error.strerror}") from None
        return {
            "plan_bytes": len(plan),
            "sha256": hashlib.sha256(plan).hexdigest(),
            "build_s": time.monotonic() - began,
            "notes": self.notes,
        }

    def _parse(self) -> Any:
        """Return TensorRT's network for the ONNX file; raises Refusal with its errors."""
        flags, kinds = 0, self._trt.NetworkDefinitionCreationFlag
        if hasattr(kinds, "EXPLICIT_BATCH"):
            flags |= 1 << int(kinds.EXPLICIT_BATCH)
        if self._is_typed():
            flags |= 1 << int(kinds.STRONGLY_TYPED)
        network = self._builder.create_network(flags)
        parser = self._trt.OnnxParser(network, self._logger)
        if not parser.parse(Path(self._request["onnx"]).read_bytes()):
            errors = [str(parser.get_error(index).desc()) for index in range(parser.num_errors)]
            raise Refusal("build-failed", "TensorRT does not accept this ONNX file: {}".format("; ".join(errors)))
        return network

    def _is_typed(self) -> bool:
        """Return whether the network is strongly typed: keeps the ONNX file's FP16, if this TensorRT can."""
        is_supported = hasattr(self._trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED")
        return is_supported and self._request["precision"] == "fp16" and bool(self._request["is_half"])

    def _set_input_shape(self, network: Any) -> None:
        """Fix the image's size; if the batch size is variable, allow 1 to max_batch images. Raises Refusal."""
        image = network.get_input(0)
        shape, expected = list(image.shape), [3, *self._request["input_px"]]
        if len(shape) != 4 or any(side not in (-1, wanted) for side, wanted in zip(shape[1:], expected)):
            raise Refusal("build-failed", f"its input is {shape}, not {expected} after the batch: export it")
        if -1 in shape[1:]:  # the file allows several sizes, the engine has one
            image.shape = [shape[0], *expected]
        if shape[0] != -1:
            return
        max_batch = int(self._request["max_batch"])
        profile = self._builder.create_optimization_profile()
        profile.set_shape(image.name, (1, *expected), (max_batch, *expected), (max_batch, *expected))
        if self._config.add_optimization_profile(profile) < 0:
            raise Refusal("build-failed", f"TensorRT does not accept a batch of {max_batch}: {self._log.reason()}")

    def _set_precision(self) -> None:
        """Set the precision; raises Refusal if this TensorRT or GPU does not support it."""
        precision = self._request["precision"]
        if precision == "int8":  # the file's Q/DQ nodes define it
            self._set_flag("INT8")
            if getattr(self._builder, "platform_has_fast_fp16", False):
                self._set_flag("FP16")  # for layers without an INT8 form
        elif precision == "fp16" and not self._is_typed() and not self._set_flag("FP16"):
            raise Refusal("unsupported", f"TensorRT {self._trt.__version__} builds fp16 engines only from an FP16 file")

    def _set_flag(self, name: str) -> bool:
        """Set a flag of the builder, and return True; False if this TensorRT does not have it."""
        flag = getattr(self._trt.BuilderFlag, name, None)
        if flag is not None:
            self._config.set_flag(flag)
        return flag is not None

    def _limit_workspace(self) -> None:
        size_bytes = int(self._request["workspace_bytes"])
        if hasattr(self._config, "set_memory_pool_limit"):
            self._config.set_memory_pool_limit(self._trt.MemoryPoolType.WORKSPACE, size_bytes)
        else:
            self._config.max_workspace_size = size_bytes

    def _use_timings(self) -> bool:
        """Reuse kernel timings of earlier builds, if TensorRT accepts the file; return whether to save new ones."""
        path = Path(self._request["timing_cache"])
        for content in (path.read_bytes() if path.exists() else b"", b""):
            cache = self._config.create_timing_cache(content)
            if cache is not None and self._config.set_timing_cache(cache, False):
                return True
            self.notes.append(f"the timing cache {path} was of no use here and is replaced")
            self._log.clear()
        return False

    def _build(self, network: Any) -> bytes:
        """Return the built engine; if the build without cuDNN and cuBLAS fails, try again with them. Raises Refusal."""
        all_sources = self._exclude_libraries() if self._request["lean_tactics"] else None
        plan = self._builder.build_serialized_network(network, self._config)
        if plan is None and all_sources is not None:
            self.notes.append("built with cuDNN and cuBLAS: without them TensorRT finds no engine")
            self._config.set_tactic_sources(all_sources)
            plan = self._builder.build_serialized_network(network, self._config)
        if plan is None:
            message = "TensorRT builds no engine: {}; if it is short of memory, see [host] workspace_mb"
            raise Refusal("build-failed", message.format(self._log.reason()))
        return bytes(plan)

    def _exclude_libraries(self) -> Optional[int]:
        """Exclude cuDNN and cuBLAS, which take much memory; return the previous tactic sources, None if unchanged."""
        kinds = self._trt.TacticSource
        all_sources = lean = int(self._config.get_tactic_sources())
        for library in ("CUBLAS", "CUBLAS_LT", "CUDNN"):
            if hasattr(kinds, library):
                lean &= ~(1 << int(getattr(kinds, library)))
        return all_sources if self._config.set_tactic_sources(lean) else None

    def _save_timings(self, content: Any) -> None:
        """Save the timings for the next build; a failure does no harm, because they only save time."""
        path = Path(self._request["timing_cache"])
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            temporary.write_bytes(bytes(content))
            temporary.replace(path)
