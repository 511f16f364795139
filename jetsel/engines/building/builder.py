"""Build a model's engine, compare it with ONNX Runtime, and only then put it into its place."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from jetsel.config import Host, engines_folder
from jetsel.engines.base import EngineFailedError
from jetsel.engines.building import plan_folder, plans
from jetsel.engines.building.child import PATIENCE, Files, Patience, build_host, load_plan, write_plan
from jetsel.engines.building.preparing import fold
from jetsel.engines.building.trial import Inputs, Tell, compare, hosted, objection
from jetsel.engines.hosting import interpreters
from jetsel.engines.hosting.process import HostProcess, Start
from jetsel.weights import Weights

SPACE_TIMES = 6  # of the ONNX file's bytes: it folded to float32 and halved, and the plan, with some to spare


@dataclass(frozen=True)
class Order:
    """One model to build. has_qdq: whether its file says by Q/DQ nodes what int8 needs; else photographs do."""

    weights: Weights
    has_qdq: bool
    inputs: Inputs  # to compare on
    calibration: Inputs | None = None


class Builder:
    """Builds into the configuration's folder. Used by the thread that made it: a host ends with its maker's thread."""

    def __init__(self, host: Host, patience: Patience = PATIENCE, stop: threading.Event | None = None) -> None:
        """Ask what TensorRT and GPU there are; raises EngineFailedError or ConfigError where there are none.

        stop: set, by any thread, to end the build that is under way.
        """
        self.folder = engines_folder(host)
        self._stop = stop or threading.Event()
        self._host = host
        self._patience = patience
        self._start = Start(
            interpreter=host.interpreter or interpreters.choose("tensorrt").path,
            backend="tensorrt",
            environment=interpreters.environment(os.environ),
            reserve_bytes=0,  # what the builder itself holds would count; whoever serves checks the reserve
            hello_s=patience.hello_s,
        )
        process = HostProcess(self._start)
        self.about: Mapping[str, Any] = process.about
        process.leave()

    def key(self, weights: Weights) -> plans.Key:
        """Return the key that the model's engine has here; raises EngineFailedError."""
        return plans.wanted_key(weights, self._host, self.about)

    def standing(self, weights: Weights) -> plans.Plan | None:
        """Return the model's engine where one stands that may be loaded here."""
        with contextlib.suppress(EngineFailedError):
            return plans.find(self.folder, weights, self._host, self.about)
        return None

    def build(self, order: Order, tell: Tell, *, force: bool = False) -> plans.Plan:
        """Return the model's engine, built where none stands, or in any case with `force`.

        Whatever ends it, what is not finished is never loaded. Raises EngineFailedError with the reason and the repair.
        """
        weights, key = order.weights, self.key(order.weights)
        if key.precision == "int8" and not self.about["gpu"].get("fast_int8"):
            raise EngineFailedError(f"{weights.name}: this GPU ({key.gpu}) is not fast in int8: build it as fp16")
        if key.precision == "int8" and not order.has_qdq and not order.calibration:
            raise EngineFailedError(
                f"{weights.name}: int8 takes its scales from photographs like those to come: name a folder with some "
                "hundreds of them: --calibrate-on DIR"
            )
        plan_folder.prepare(self.folder, SPACE_TIMES * _size(weights))
        with plan_folder.only_builder(self.folder, lambda: tell(f"waiting for another build in {self.folder}", None)):
            standing = None if force else self.standing(weights)  # another builder may have been faster
            return standing or self._build(order, key, tell)

    def prune(self, models: Sequence[Weights], others: Sequence[Host] = ()) -> list[tuple[Path, int]]:
        """Delete the engines of these models that do not fit here, and those without a usable record.

        others: settings whose engines stay, too. Return what was deleted, and its bytes. Raises EngineFailedError.
        """
        hosts = (self._host, *others)
        keep = [plans.wanted_key(weights, host, self.about) for weights in models for host in hosts]
        plan_folder.prepare(self.folder, 0)
        with plan_folder.only_builder(self.folder, lambda: None):
            return plan_folder.prune(self.folder, keep)

    def _build(self, order: Order, key: plans.Key, tell: Tell) -> plans.Plan:
        weights, calibration = order.weights, order.calibration
        if key.precision != "int8" or order.has_qdq:
            calibration = None
        files = self._files(order, key, calibration)
        try:
            tell("preparing", None)
            if not order.has_qdq:
                fold(weights, files.source)
            with build_host(self._start, weights, self._patience, self._stop) as process:
                built, notes = write_plan(process, key, weights, files, order.inputs, calibration, self._patience, tell)
                loaded = load_plan(process, key, weights, files.plan, built, self._patience, tell)
                check = compare(hosted(process, weights, loaded), loaded.get("max_batch"), weights, order.inputs, tell)
            refused = objection(check, key.precision)
            if refused is not None:
                raise EngineFailedError(
                    f"{weights.name}: its engine is not used: {refused}; build it with --precision fp32, or compare on "
                    "photographs like those to come: --photographs DIR"
                )
            if calibration is not None:
                notes.append(f"calibrated on {len(calibration)} photographs ({calibration.source})")
            return plan_folder.install(self.folder, files.plan, self._record(order, key, built, loaded, check, notes))
        finally:
            for path in self.folder.glob(f"{plan_folder.ASIDE}{key.stem}*"):
                path.unlink(missing_ok=True)

    def _files(self, order: Order, key: plans.Key, calibration: Inputs | None) -> Files:
        aside = f"{plan_folder.ASIDE}{key.stem}"
        cache = None
        if calibration is not None:
            cache = plan_folder.calibration_cache(self.folder, key, _digest(calibration))
        return Files(
            source=order.weights.path if order.has_qdq else self.folder / f"{aside}.onnx",
            half=self.folder / f"{aside}-half.onnx",
            plan=self.folder / f"{aside}.plan",
            timing_cache=plan_folder.timing_cache(self.folder, key),
            calibration_cache=cache,
        )

    def _record(
        self,
        order: Order,
        key: plans.Key,
        built: Mapping[str, Any],
        loaded: Mapping[str, Any],
        check: plans.Check,
        notes: list[str],
    ) -> plans.Record:
        return plans.Record(
            model=order.weights.name,
            key=key,
            plan_sha256=built["sha256"],
            plan_bytes=built["plan_bytes"],
            build_s=round(float(built["build_s"]), 3),
            built=datetime.now(timezone.utc).isoformat(timespec="seconds"),
            libraries={**self.about.get("libraries", {}), "python": self.about.get("python")},
            cost_bytes=loaded.get("cost_bytes"),
            scratch_bytes=loaded.get("scratch_bytes"),
            check=check,
            notes=notes,
        )


def _size(weights: Weights) -> int:
    try:
        return weights.path.stat().st_size
    except OSError as error:
        raise EngineFailedError(
            f"{weights.name}: {weights.path}: cannot be read: {error.strerror}; put the weights there"
        ) from None


def _digest(inputs: Inputs) -> str:
    digest = hashlib.sha256()
    for photograph in inputs:
        digest.update(photograph.tobytes())
    return digest.hexdigest()
