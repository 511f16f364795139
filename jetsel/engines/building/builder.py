"""Build a model's engine, compare it with ONNX Runtime, and only then put it into its place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError
from jetsel.engines.building import plan_folder, plans
from jetsel.engines.building.preparing import fold, halve
from jetsel.engines.building.trial import Array, Inputs, compare, objection
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.link import LinkBrokenError, LinkTimeoutError
from jetsel.engines.hosting.memory import Memory
from jetsel.engines.hosting.process import HostProcess, Start, ask_about
from jetsel.engines.hosting.running import Loaded, good

LIMIT_S = 14_400.0  # of one build
END_S = 1.0  # for a host that broke off to end by itself, so that its signal can be told
MODEL = 1  # the number of the one model that the host loads
SPACE_TIMES = 6  # of the ONNX file's bytes: it folded to float32 and halved, and the plan, with some to spare

Ask = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class Order:
    """One model to build. has_qdq: whether its file says by Q/DQ nodes what int8 needs. inputs: to compare on."""

    weights: Weights
    has_qdq: bool
    inputs: Inputs


class Builder:
    """Builds into the settings' folder. Used by the thread that made it: a host ends with its maker's thread."""

    def __init__(self, settings: HostSettings, limit_s: float = LIMIT_S) -> None:
        """Ask what TensorRT and GPU there are; raises EngineFailedError where there are none.

        limit_s: that one build may take.
        """
        self.settings = settings
        self._limit_s = limit_s
        # Nothing is reserved: what the builder itself holds would count; the daemon checks the reserve.
        interpreter = settings.interpreter or interpreters.default("tensorrt")
        self._start = Start(interpreter, "tensorrt")
        self.about: Mapping[str, Any] = ask_about(self._start)

    def key(self, weights: Weights) -> plans.Key:
        """Return the key that the model's engine has here; raises EngineFailedError."""
        return plans.wanted_key(weights, self.settings, self.about)

    def standing(self, weights: Weights) -> plans.Plan | None:
        """Return the model's engine where one stands that may be loaded here."""
        with contextlib.suppress(EngineFailedError):
            return plans.find(self.settings, weights, self.about)
        return None

    def build(self, order: Order, waiting: Callable[[], None] | None = None, *, force: bool = False) -> plans.Plan:
        """Return the model's engine, built where none stands, or in any case with `force`.

        waiting: called where another build has to end first. Whatever ends it, what is not finished is never loaded.
        Raises EngineFailedError with the reason and the repair.
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
            said = f"{weights.name}: {weights.path}: cannot be read: {fault.strerror}; put the weights there"
            raise EngineFailedError(said) from None
        with plan_folder.working_folder(folder, needed_bytes, waiting) as work:
            standing = None if force else self.standing(weights)  # another builder may have been faster
            return standing or self._build(order, key, work)

    def _build(self, order: Order, key: plans.Key, work: Path) -> plans.Plan:
        weights = order.weights
        source, plan = weights.path, work / f"{key.stem}{plans.PLAN}"
        if not order.has_qdq:
            source = work / "folded.onnx"
            fold(weights, source)
        with self._host(weights.name) as (memory, ask):
            request = self._request(key, weights, source, plan)
            reply = ask("build", request)
            notes = []
            if reply.get("code") == "unsupported" and key.precision == "fp16":
                half = work / "half.onnx"
                halve(weights, source, half)
                notes.append("built from its ONNX file in half precision")
                reply = ask("build", {**request, "onnx": str(half), "is_half": True})
            built = good(weights.name, reply)
            request = plans.load_request(weights, plan, built["sha256"])
            about = good(weights.name, ask("load", {"model": MODEL, **request}))
            loaded = Loaded(MODEL, weights, about["max_batch"], about["embedding_width"])

            def run(batch: Array) -> tuple[Array, float | None]:
                output, _ = loaded.run(memory, lambda request: ask("infer", request), batch)
                return output.logits, output.device_ms

            check = compare(run, loaded.max_batch, weights, order.inputs)
        refused = objection(check, key.precision)
        if refused is not None:
            raise EngineFailedError(
                f"{weights.name}: its engine is not used: {refused}; build it with --precision fp32, or compare on "
                "photographs like those to come: --photographs DIR"
            )
        notes += built["notes"]
        record = plans.Record(
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
        return plan_folder.install(work, plan, record)

    @contextlib.contextmanager
    def _host(self, name: str) -> Iterator[tuple[Memory, Ask]]:
        """Give a host's memory, and how it is asked one thing; if it ends, the error has the cause and what helps."""
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
            raise EngineFailedError(
                f"{name}: its build died: {error} ({how}): {cause}: lower [host] workspace_mb, or stop what else runs"
            ) from None
        finally:
            process.kill()

    def _request(self, key: plans.Key, weights: Weights, source: Path, plan: Path) -> dict[str, Any]:
        return {
            "onnx": str(source),
            "precision": key.precision,
            "is_half": False,
            "max_batch": key.max_batch,
            "input_px": [weights.height_px, weights.width_px],
            "workspace_bytes": key.workspace_bytes,
            "lean_tactics": key.lean_tactics,
            "timing_cache": str(plan_folder.timing_cache(self.settings.folder, key)),
            "plan": str(plan),
        }
