"""Builds a model's TensorRT engine from its ONNX file, and installs it if its results agree with ONNX Runtime's."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import onnxruntime

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError
from jetsel.engines.building import plans
from jetsel.engines.building.trial import Array, Inputs, compare, reason_to_reject
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.process import HostProcess, HostStart, LinkBrokenError, LinkTimeoutError, query_host
from jetsel.engines.hosting.running import HostedModel, Memory, checked_reply
from jetsel.engines.onnx import explain_error


def fold_constants(weights: Weights, target: Path) -> None:
    """Write the model with all constant expressions computed to `target`; raises EngineFailedError.

    Otherwise TensorRT 8 rejects models whose float16 kernels are cast: "TensorRT only supports multi-input conv for
    explicit precision QAT networks" (onnx/onnx-tensorrt issue 645).
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC  # only ONNX's own operators
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    try:
        onnxruntime.InferenceSession(str(weights.path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's exceptions share no other base
        message = f"{weights.name}: ONNX Runtime does not prepare it for a build: {explain_error(error)}"
        raise EngineFailedError(message) from None


_OPSETS = {(8, 0): 13, (8, 5): 17, (9, 2): 19, (10, 0): 20, (10, 15): 24}
"""TensorRT version -> latest ONNX opset that it and later ones read (docs/operators.md of onnx/onnx-tensorrt)."""


def opset_repair(path: Path, tensorrt: str) -> str:
    """Return the end of an error message if the file's opset is too new for this TensorRT, else an empty string."""
    import onnx  # not at the top, because no serving process needs it

    release = tuple(int(part) for part in re.findall(r"\d+", tensorrt)[:2])
    limit = max((opset for since, opset in _OPSETS.items() if since <= release), default=0)
    imports = onnx.load(str(path)).opset_import
    opset = max((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), default=0)
    if not 0 < limit < opset:
        return ""
    return f"; its opset is {opset}, and TensorRT {tensorrt} reads up to {limit}: export it with opset_version={limit}"


def convert_to_float16(weights: Weights, source: Path, target: Path) -> None:
    """Write `source` with weights and arithmetic in float16, but float32 inputs and outputs, to `target`.

    TensorRT versions that only build strongly typed networks compute in the types of the ONNX file. Operators that are
    inexact in float16 stay in float32, by ONNX Runtime's list. Raises EngineFailedError with the repair.
    """
    import onnx  # not at the top, because no serving process needs it
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    try:
        model = OnnxModel(convert_float_to_float16(onnx.load(str(source)), keep_io_types=True))
        model.topological_sort()  # the conversion puts the input's cast last
        onnx.checker.check_model(model.model)
        onnx.save(model.model, str(target))
    except Exception as error:  # onnx and protobuf raise all kinds of exceptions
        raise EngineFailedError(
            f"{weights.name}: this TensorRT takes fp16 only from an ONNX file in half precision, and it cannot be "
            f"converted to that ({explain_error(error)}): set [host] precision to fp32"
        ) from None


LIMIT_S = 14_400.0  # of one build
END_S = 1.0  # for a failed host to end by itself, so that its signal can be reported
MODEL_NUMBER = 1  # number of the only model in the host
SPACE_TIMES = 6  # of the ONNX file's bytes, for the folded and halved files, the plan, and a margin

Ask = Callable[..., dict[str, Any]]  # sends a host a request: its kind and fields; returns the reply


@dataclass(frozen=True)
class EngineOrder:
    """One model to build."""

    weights: Weights
    has_qdq: bool  # whether its file has quantisation nodes (Q/DQ), which int8 needs
    inputs: Inputs  # images on which the engine is compared with ONNX Runtime


class Builder:
    """Builds engines into the settings' folder. Use it in the thread that made it: its hosts end with that thread."""

    def __init__(self, settings: HostSettings, limit_s: float = LIMIT_S) -> None:
        """Query TensorRT and the GPU; raises EngineFailedError if one is missing. limit_s: for one build."""
        self.settings = settings
        self._limit_s = limit_s
        # No reserve: the builder's own memory would count against it, and the daemon checks the reserve.
        interpreter = settings.interpreter or interpreters.default("tensorrt")
        self._start = HostStart(interpreter, "tensorrt")
        self.about: Mapping[str, Any] = query_host(self._start)

    def key(self, weights: Weights) -> plans.Key:
        """Return all that the model's engine on this device depends on; raises EngineFailedError without a GPU."""
        return plans.wanted_key(weights, self.settings, self.about)

    def installed(self, weights: Weights) -> plans.EnginePlan | None:
        """Return the model's installed engine; None if there is none for the current key."""
        with contextlib.suppress(EngineFailedError):
            return plans.find(self.settings, weights, self.about)
        return None

    def build(
        self, order: EngineOrder, waiting: Callable[[], None] | None = None, *, force: bool = False
    ) -> plans.EnginePlan:
        """Return the model's engine; build and install it if none is installed, or if `force` is set.

        waiting: called once if another build has to end first. An interrupted build leaves nothing that could be
        loaded. Raises EngineFailedError with the reason and the repair.
        """
        weights, key, folder = order.weights, self.key(order.weights), self.settings.folder
        if key.precision == "int8" and not self.about["gpu"].get("fast_int8"):
            raise EngineFailedError(f"{weights.name}: this GPU ({key.gpu}) is not fast in int8: build it as fp16")
        if key.precision == "int8" and not order.has_qdq:
            raise EngineFailedError(
                f"{weights.name}: int8 needs Q/DQ nodes in its ONNX file: quantise that with ONNX Runtime or NVIDIA's "
                "ModelOpt and add it, or build it as fp16"
            )
        try:
            needed_bytes = SPACE_TIMES * weights.path.stat().st_size
        except OSError as fault:
            message = f"{weights.name}: {weights.path}: cannot be read: {fault.strerror}; put the weights there"
            raise EngineFailedError(message) from None
        with plans.working_folder(folder, needed_bytes, waiting) as work:
            installed = None if force else self.installed(weights)  # another builder may have installed it meanwhile
            return installed or self._build(order, key, work)

    def _build(self, order: EngineOrder, key: plans.Key, work: Path) -> plans.EnginePlan:
        """Build in a host, load the result there, compare it, and move it out of the folder `work`, see `build`."""
        weights = order.weights
        source, plan = weights.path, work / f"{key.stem}{plans.PLAN}"
        if not order.has_qdq:
            source = work / "folded.onnx"
            fold_constants(weights, source)
        with self._run_host(weights.name) as (memory, ask):
            request = self._build_request(key, weights, source, plan)
            reply = ask("build", request)
            notes = []
            if reply.get("code") == "unsupported" and key.precision == "fp16":
                half = work / "half.onnx"
                convert_to_float16(weights, source, half)
                notes.append("built from its ONNX file in half precision")
                reply = ask("build", {**request, "onnx": str(half), "is_half": True})
            if reply.get("code") == "build-failed":
                reply["message"] += opset_repair(weights.path, key.tensorrt)
            built = checked_reply(weights.name, reply)
            request = plans.load_request(weights, plan, built["sha256"])
            about = checked_reply(weights.name, ask("load", {"model": MODEL_NUMBER, **request}))
            model = HostedModel(MODEL_NUMBER, weights, about["max_batch"], about["embedding_width"])

            def run(batch: Array) -> tuple[Array, float | None]:
                output, _ = model.run(memory, lambda request: ask("infer", request), batch)
                return output.logits, output.device_ms

            check = compare(run, model.max_batch, weights, order.inputs)
        rejection = reason_to_reject(check, key.precision)
        if rejection is not None:
            raise EngineFailedError(
                f"{weights.name}: its engine is not used: {rejection}; build it with --precision fp32, or compare on "
                "images from your application: --photographs DIR"
            )
        notes += built["notes"]
        record = plans.PlanRecord(
            model=weights.name,
            key=key,
            plan_sha256=built["sha256"],
            plan_bytes=built["plan_bytes"],
            build_s=round(float(built["build_s"]), 3),
            built=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            libraries={**self.about["libraries"], "python": self.about["python"]},
            cost_bytes=about["cost_bytes"],
            scratch_bytes=about["scratch_bytes"],
            check=check,
            notes=notes,
        )
        return plans.install(work, plan, record)

    @contextlib.contextmanager
    def _run_host(self, name: str) -> Iterator[tuple[Memory, Ask]]:
        """Start a host; yield its memory and a function that sends it requests. EngineFailedError if the host ends."""
        give_up_s = time.monotonic() + self._limit_s
        process = HostProcess(self._start)

        def ask(kind: str, request: Mapping[str, Any]) -> dict[str, Any]:
            return process.exchange(kind, request, max(give_up_s - time.monotonic(), 0.0))

        try:
            yield process.memory, ask
            process.leave()
        except LinkTimeoutError:
            raise EngineFailedError(
                f"{name}: its build took longer than {self._limit_s:g} s and was killed: allow it more with --limit-s, "
                "or lower [host] workspace_mb"
            ) from None
        except LinkBrokenError as error:
            how = process.kill(END_S)
            cause = "most likely no memory was left" if "SIGKILL" in how else "see NVIDIA/TensorRT issue 1404"
            repair = "lower [host] workspace_mb, or stop other programs"
            raise EngineFailedError(f"{name}: its build died: {error} ({how}): {cause}: {repair}") from None
        finally:
            process.kill()

    def _build_request(self, key: plans.Key, weights: Weights, source: Path, plan: Path) -> dict[str, Any]:
        return {
            "onnx": str(source),
            "precision": key.precision,
            "is_half": False,
            "max_batch": key.max_batch,
            "input_px": [weights.height_px, weights.width_px],
            "workspace_bytes": key.workspace_bytes,
            "lean_tactics": key.lean_tactics,
            "timing_cache": str(plans.timing_cache(self.settings.folder, key)),
            "plan": str(plan),
        }
