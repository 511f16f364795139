"""The engines that were built on this device, in their folder: what each was made for, and which a model may load."""

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
_DIGITS = 12  # of a hash, in a file's name: what is inside the record decides

Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
Sentence = Annotated[str, Meta(min_length=1, max_length=2000)]
Count = Annotated[int, Meta(ge=0, le=1 << 50)]
Duration = Annotated[float, Meta(ge=0)]


class Key(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that an engine depends on: one that was built under another key is never loaded.

    onnx_sha256: of the model's own file. input_px: its height and width, which a file may leave open. tensorrt: the
    exact version. max_batch: photographs of one run, at most. workspace_bytes: what the builder could try its tactics
    in. lean_tactics: whether cuBLAS and cuDNN, which cost hundreds of megabytes on a board whose GPU shares its memory,
    were to be left out if the build succeeds without.
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
        """Return the SHA-256 of all of it, in hexadecimal."""
        plain = json.dumps(msgspec.structs.asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(plain.encode()).hexdigest()

    @property
    def stem(self) -> str:
        """What the names of the plan and of its record begin with."""
        return f"{self.onnx_sha256[:_DIGITS]}-{self.digest()[:_DIGITS]}"

    def differences(self, key: Key) -> str:
        """Say what tells this key, of an engine that stands, from the one that is wanted here."""
        theirs, ours = msgspec.structs.asdict(self), msgspec.structs.asdict(key)
        return "; ".join(f"{name} {theirs[name]} and not {ours[name]}" for name in theirs if theirs[name] != ours[name])


class Check(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an engine answered on photographs, beside ONNX Runtime with the model's own file.

    agreement: the share with the same first answer. largest_difference: of any logit. spread: of ONNX Runtime's logits,
    the largest less the smallest. device_ms: the median of single photographs, None if the device has no clock.
    """

    photographs: Annotated[int, Meta(ge=1)]
    source: Sentence
    agreement: Annotated[float, Meta(ge=0, le=1)]
    largest_difference: Duration
    spread: Duration
    device_ms: Duration | None


class PlanRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What lies beside a plan. Bytes and seconds are measured; None if they could not be.

    built: when, in UTC. libraries: versions, by name. cost_bytes: of memory, that loading it took. scratch_bytes: of
    that, what a run works in.
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
    """An engine that may be loaded here."""

    path: Path
    record: PlanRecord

    def to_load(self, weights: Weights) -> dict[str, Any]:
        """Return what the host is asked to load; see docs/engine-host.md."""
        record = self.record
        expected_bytes = record.plan_bytes if record.cost_bytes is None else record.cost_bytes
        return {**load_request(weights, self.path, record.plan_sha256), "expected_bytes": expected_bytes}


def load_request(weights: Weights, path: Path, sha256: str) -> dict[str, Any]:
    """Return what a host is asked to load: this file for this model."""
    return {
        "name": weights.name,
        "path": str(path),
        "sha256": sha256,
        "classes": weights.classes,
        "input_px": [weights.height_px, weights.width_px],
    }


def wanted_key(weights: Weights, settings: HostSettings, about: Mapping[str, Any]) -> Key:
    """Return the key of the engine that this model needs here; about: the host's reply to hello.

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
        workspace_bytes=settings.workspace_bytes,
        # cuBLAS +281 MiB and cuDNN +412 MiB were seen on a Nano (wang-xinyu/tensorrtx issue 1145), whose GPU takes
        # them from the memory that everything else lives in.
        lean_tactics=bool(gpu["is_integrated"]),
    )


def find(settings: HostSettings, weights: Weights, about: Mapping[str, Any]) -> EnginePlan:
    """Return the engine of this model for this TensorRT, GPU and these settings.

    Raises EngineFailedError that says what there is instead, and which command builds it.
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
    """Read one record; raises OSError, and ValueError that says what is wrong with it."""
    try:
        return msgspec.json.decode(files.read_bounded(path, MAX_RECORD_BYTES), type=PlanRecord)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not a record of an engine: {error}") from None


def _closest_engine(folder: Path, key: Key) -> str:
    """Say what the folder has of this model: the engine that differs least, or none."""
    others = []
    for path in folder.glob(f"{key.onnx_sha256[:_DIGITS]}-*{RECORD}"):
        with contextlib.suppress(OSError, ValueError):
            path.with_suffix(PLAN).stat()
            others.append(read_record(path).key.differences(key))
    if not others:
        return "no engine of it was built on this device"
    return f"its engine was built with {min(others, key=len)}"


@contextmanager
def working_folder(folder: Path, needed_bytes: int, waiting: Callable[[], None] | None = None) -> Iterator[Path]:
    """Give a folder to build in, for as long as a `with` lasts; the folder of engines is made if there is none.

    Two builds at once would take each other's memory, and time their tactics wrongly, so others wait. needed_bytes:
    free space without which a build is not begun. waiting: called once if another builder has to be waited for.
    Raises EngineFailedError with the repair, also for an OSError of the block.
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
            for left in folder.glob("*.cache.*"):  # of a host that was killed while it wrote one
                left.unlink()
            yield work
    except OSError as fault:
        repair = files.repair_of(fault, "choose another folder with [host] engines")
        message = f"{folder}: engines cannot be saved there ({fault.strerror or fault}): {repair}"
        raise EngineFailedError(message) from None


def install(work: Path, plan: Path, record: PlanRecord) -> EnginePlan:
    """Move a plan and its record from the working folder into the folder; return the engine. Raises OSError."""
    described = plan.with_suffix(RECORD)
    files.write(described, msgspec.json.format(msgspec.json.encode(record)) + b"\n")
    versions.publish(work, [plan.name, described.name])
    return EnginePlan(work.parent / plan.name, record)


def timing_cache(folder: Path, key: Key) -> Path:
    """Return where the builder's timings for this device and TensorRT lie; they are of no use to any other."""
    return folder / f"timing-{_plain(key.gpu)}-{key.compute_capability}-{_plain(key.tensorrt)}.cache"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", text)[:64]
