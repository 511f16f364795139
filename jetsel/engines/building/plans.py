"""The folder of TensorRT engines built on this device: what each was built for, and which one a model may load."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from jetsel.base import files, versions
from jetsel.base.host_settings import HostSettings, Precision
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError

MAX_RECORD_BYTES = 65_536
PLAN, RECORD = ".plan", ".json"
_DIGITS = 12  # hash digits in a file's name; only the record's content decides

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
Sentence = Annotated[str, Meta(min_length=1, max_length=2000)]
Count = Annotated[int, Meta(ge=0, le=1 << 50)]
Duration = Annotated[float, Meta(ge=0)]


class Key(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that an engine depends on: an engine with another key is never loaded.

    onnx_sha256: of the model's file. input_px: height and width, which the file may leave open. tensorrt: the exact
    version. max_batch: most images of one run. workspace_bytes: workspace of the builder's tactics. lean_tactics:
    whether to build without cuBLAS and cuDNN if possible, which take hundreds of megabytes of a board's shared memory.
    """

    onnx_sha256: Sha256
    input_px: tuple[Count, Count]
    tensorrt: Text
    gpu: Text
    compute_capability: Annotated[str, Meta(pattern=r"^\d{1,3}\.\d{1,3}\Z")]
    precision: Precision
    max_batch: Annotated[int, Meta(ge=1, le=256)]
    workspace_bytes: Count
    lean_tactics: bool

    def digest(self) -> str:
        """Return the SHA-256 of all fields, in hexadecimal."""
        plain = json.dumps(msgspec.structs.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(plain.encode()).hexdigest()

    @property
    def stem(self) -> str:
        """The stem of the names of the engine's two files: the plan and its record."""
        return f"{self.onnx_sha256[:_DIGITS]}-{self.digest()[:_DIGITS]}"

    def differences(self, key: Key) -> str:
        """Return in words how this key, of an installed engine, differs from the needed `key`; empty if it does not."""
        theirs, ours = msgspec.structs.asdict(self), msgspec.structs.asdict(key)
        return "; ".join(f"{name} {theirs[name]} and not {ours[name]}" for name in theirs if theirs[name] != ours[name])


class Check(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An engine's results on images, compared with ONNX Runtime on the model's file.

    photographs: number of images. source: where they come from, for people. agreement: share of images with the same
    top class. largest_difference: of any logit. spread: largest minus smallest of ONNX Runtime's logits. device_ms:
    median for single images, None if the device has no clock.
    """

    photographs: Annotated[int, Meta(ge=1)]
    source: Sentence
    agreement: Annotated[float, Meta(ge=0, le=1)]
    largest_difference: Duration
    spread: Duration
    device_ms: Duration | None


class PlanRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The record beside a plan. Bytes and seconds are measured; None if they could not be.

    built: time in UTC. libraries: versions by name. cost_bytes: memory that the load took. scratch_bytes: the part of
    it that a run works in.
    """

    format: Literal[1] = 1
    model: Text
    key: Key
    plan_sha256: Sha256
    plan_bytes: Annotated[int, Meta(ge=1)]
    build_s: Duration
    built: Text
    libraries: Annotated[dict[Text, Text | None], Meta(max_length=32)]
    cost_bytes: Count | None
    scratch_bytes: Count | None
    check: Check
    notes: Annotated[list[Sentence], Meta(max_length=32)] = []


@dataclass(frozen=True)
class EnginePlan:
    """An installed engine that may be loaded on this device: the path of its plan file, and its record."""

    path: Path
    record: PlanRecord

    def to_load(self, weights: Weights) -> dict[str, Any]:
        """Return the request that makes a host load the engine (docs/engine-host.md), with its expected memory."""
        record = self.record
        expected_bytes = record.plan_bytes if record.cost_bytes is None else record.cost_bytes
        return {**load_request(weights, self.path, record.plan_sha256), "expected_bytes": expected_bytes}


def load_request(weights: Weights, path: Path, sha256: str) -> dict[str, Any]:
    """Return the request that makes a host load this file, with this hash, for this model (docs/engine-host.md)."""
    return {
        "name": weights.name,
        "path": str(path),
        "sha256": sha256,
        "classes": weights.classes,
        "input_px": [weights.height_px, weights.width_px],
    }


def wanted_key(weights: Weights, settings: HostSettings, about: Mapping[str, Any]) -> Key:
    """Return the key of the engine that this model needs on this device. about: an engine host's reply to hello.

    Raises EngineFailedError if the host sees no GPU.
    """
    gpu = about.get("gpu")
    if not gpu:
        raise EngineFailedError(f"{weights.name}: the engine host sees no GPU; see: jetsel doctor")
    return Key(
        onnx_sha256=weights.sha256,
        input_px=(weights.height_px, weights.width_px),
        tensorrt=about["version"],
        gpu=gpu["name"],
        compute_capability=gpu["compute_capability"],
        precision=settings.precision,
        max_batch=settings.max_batch,
        workspace_bytes=int(settings.workspace_mb * 1e6),
        # On a Nano, cuBLAS took 281 MiB and cuDNN 412 MiB (wang-xinyu/tensorrtx issue 1145) of the memory that its GPU
        # shares with everything else.
        lean_tactics=bool(gpu["is_integrated"]),
    )


def find(settings: HostSettings, weights: Weights, about: Mapping[str, Any]) -> EnginePlan:
    """Return the installed engine of this model for these settings. about: an engine host's reply to hello.

    Raises EngineFailedError with what the most similar installed engine differs in, and the command that builds it.
    """
    key = wanted_key(weights, settings, about)
    path = settings.folder / f"{key.stem}{PLAN}"
    repair = f"run: jetsel models build {weights.name}"
    try:
        record = read_record(path.with_suffix(RECORD))
        size = path.stat().st_size
    except FileNotFoundError:
        raise EngineFailedError(f"{weights.name}: {_closest_engine(settings.folder, key)}; {repair}") from None
    except OSError as error:
        raise EngineFailedError(
            f"{weights.name}: {path.with_suffix(RECORD)}: cannot be read: {error.strerror}; let the daemon's user read "
            f"it, or {repair} --force"
        ) from None
    except ValueError as error:
        raise EngineFailedError(f"{weights.name}: {path.with_suffix(RECORD)}: {error}; {repair} --force") from None
    if record.key != key or size != record.plan_bytes:
        why = record.key.differences(key) or f"{record.plan_bytes} bytes and not {size}"
        raise EngineFailedError(f"{weights.name}: the record of {path} does not match: {why}; {repair} --force")
    return EnginePlan(path, record)


def read_record(path: Path) -> PlanRecord:
    """Read the record beside a plan; raises OSError, or ValueError with the fault."""
    try:
        return msgspec.json.decode(files.read_bounded(path, MAX_RECORD_BYTES), type=PlanRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a record of an engine: {error}") from None


def _closest_engine(folder: Path, key: Key) -> str:
    """Return, for an error message, how the most similar engine of this model in the folder differs from `key`."""
    differences = []
    for path in folder.glob(f"{key.onnx_sha256[:_DIGITS]}-*{RECORD}"):
        with contextlib.suppress(OSError, ValueError):
            path.with_suffix(PLAN).stat()
            differences.append(read_record(path).key.differences(key))
    if not differences:
        return "no engine of it was built on this device"
    return f"its engine was built with {min(differences, key=len)}"


@contextmanager
def working_folder(folder: Path, needed_bytes: int, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
    """Yield a temporary folder to build in, inside the folder of engines, which is created if it does not exist.

    A second builder waits, because two builds at once would share memory and time their tactics wrongly. needed_bytes:
    free space without which no build begins. waiting: called once if another builder has to end first. Raises
    EngineFailedError with the repair, also for an OSError in the block.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(folder).free
        if free_bytes < needed_bytes:
            raise EngineFailedError(
                f"{folder} has {free_bytes / 1e6:.0f} MB free, and a build may need {needed_bytes / 1e6:.0f} MB: free "
                "some space (engines of earlier versions lie there, too), or choose another folder with [host] engines"
            )
        with versions.working_folder(
            folder, lambda name: (folder / name).with_suffix(RECORD).exists(), waiting
        ) as work:
            for leftover in folder.glob("*.cache.*"):  # of a host that was killed while it wrote
                leftover.unlink()
            yield work
    except OSError as fault:
        repair = files.repair_of(fault, "choose another folder with [host] engines")
        message = f"{folder}: engines cannot be saved there ({fault.strerror or fault}): {repair}"
        raise EngineFailedError(message) from None


def install(work: Path, plan: Path, record: PlanRecord) -> EnginePlan:
    """Move a plan from the working folder to the folder of engines, with its record. Raises OSError."""
    record_path = plan.with_suffix(RECORD)
    files.write(record_path, msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    versions.publish(work, [plan.name, record_path.name])
    return EnginePlan(work.parent / plan.name, record)


def timing_cache(folder: Path, key: Key) -> Path:
    """Return the path of TensorRT's timings of kernels, which make builds for the same GPU and version faster."""
    return folder / f"timing-{_as_file_name(key.gpu)}-{key.compute_capability}-{_as_file_name(key.tensorrt)}.cache"


def _as_file_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text)[:64]
