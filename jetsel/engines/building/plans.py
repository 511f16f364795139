"""The engines that were built on this device: what each was made for, and which one a model may be loaded from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from jetsel.config import Host
from jetsel.engines.base import EngineFailedError
from jetsel.weights import Weights

MAX_RECORD_BYTES = 65_536
PLAN, RECORD = ".plan", ".json"
_DIGITS = 12  # of a hash, in a file's name: what is inside the record decides

Precision = Literal["fp32", "fp16", "int8"]
Sha256 = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
Text = Annotated[str, Meta(min_length=1, max_length=200)]
Sentence = Annotated[str, Meta(min_length=1, max_length=2000)]
Count = Annotated[int, Meta(ge=0, le=1 << 50)]
Duration = Annotated[float, Meta(ge=0)]


class Key(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything that an engine depends on: one that was built under another key is never loaded.

    onnx_sha256: of the model's own file. tensorrt: the exact version. max_batch: photographs of one run, at most.
    workspace_bytes: what the builder could try its tactics in. lean_tactics: whether cuBLAS and cuDNN, which cost
    hundreds of megabytes on a board whose GPU shares its memory, were to be left out where the build succeeds without.
    """

    onnx_sha256: Sha256
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

    def differences(self, wanted: Key) -> list[str]:
        """Say what tells this key, of an engine that stands, from the one that is wanted here."""
        theirs, ours = msgspec.structs.asdict(self), msgspec.structs.asdict(wanted)
        return [
            _DIFFERENCES[name].format(_shown(name, theirs[name]), _shown(name, ours[name]))
            for name in _DIFFERENCES
            if theirs[name] != ours[name]
        ]


_DIFFERENCES = {
    "onnx_sha256": "built from another ONNX file ({}) than the model's ({})",
    "tensorrt": "built for TensorRT {}, and this board has {}",
    "gpu": "built on the GPU {}, and this one is {}",
    "compute_capability": "built for compute capability {}, and this GPU has {}",
    "precision": "built as {}, and [host] precision is {}",
    "max_batch": "built for {} photographs a run, and [host] max_batch is {}",
    "workspace_bytes": "built with a workspace of {} MB, and [host] workspace_mb is {}",
    "lean_tactics": "built {} cuBLAS and cuDNN, and here it is to be tried {} them",
}


class Check(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an engine answered on photographs, beside ONNX Runtime with the model's own file.

    agreement: the share with the same first answer. largest_difference: of any logit. spread: of ONNX Runtime's logits,
    the largest less the smallest. device_ms: the median of single photographs, None where the device has no clock.
    """

    photographs: Annotated[int, Meta(ge=1)]
    source: Sentence
    agreement: Annotated[float, Meta(ge=0, le=1)]
    largest_difference: Duration
    spread: Duration
    device_ms: Duration | None


class Record(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What lies beside a plan. Bytes and seconds are measured; None where they could not be.

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
class Plan:
    """An engine that may be loaded here."""

    path: Path
    record: Record

    def to_load(self) -> dict[str, Any]:
        """Return what the host is told of the file; see docs/engine-host.md."""
        record, key = self.record, self.record.key
        return {
            "path": str(self.path),
            "sha256": record.plan_sha256,
            "made_for": {
                "tensorrt": key.tensorrt,
                "gpu": key.gpu,
                "compute_capability": key.compute_capability,
            },
            "expected_bytes": record.plan_bytes if record.cost_bytes is None else record.cost_bytes,
        }


def wanted_key(weights: Weights, host: Host, about: Mapping[str, Any]) -> Key:
    """Return the key of the engine that this model needs here; about: the host's reply to hello.

    Raises EngineFailedError where the host sees no GPU.
    """
    gpu = about.get("gpu")
    if not gpu:
        raise EngineFailedError(f"{weights.name}: the engine host sees no GPU; see: jetsel doctor")
    plain = {
        "onnx_sha256": weights.sha256,
        "tensorrt": about.get("version"),
        "gpu": gpu.get("name"),
        "compute_capability": gpu.get("compute_capability"),
        "precision": host.precision,
        "max_batch": host.max_batch,
        "workspace_bytes": int(host.workspace_mb * 1e6),
        # cuBLAS +281 MiB and cuDNN +412 MiB were seen on a Nano (wang-xinyu/tensorrtx issue 1145), whose GPU takes
        # them from the memory that everything else lives in.
        "lean_tactics": bool(gpu.get("is_integrated")),
    }
    try:
        return msgspec.convert(plain, Key)
    except msgspec.ValidationError as error:
        raise EngineFailedError(f"{weights.name}: the engine host says {plain}: {error}; see: jetsel doctor") from None


def find(folder: Path, weights: Weights, host: Host, about: Mapping[str, Any]) -> Plan:
    """Return the engine of this model for this TensorRT, GPU and configuration.

    Raises EngineFailedError that says what there is instead, and which command builds it.
    """
    wanted = wanted_key(weights, host, about)
    path = folder / f"{wanted.stem}{PLAN}"
    repair = f"run: jetsel models build {weights.name}"
    try:
        record = read_record(path.with_suffix(RECORD))
        size = path.stat().st_size
    except FileNotFoundError:
        raise EngineFailedError(f"{weights.name}: {_instead(folder, wanted)}; {repair}") from None
    except OSError as error:
        raise EngineFailedError(
            f"{weights.name}: {path}: cannot be read: {error.strerror}; let the daemon's user read it, or {repair}"
        ) from None
    except ValueError as error:
        raise EngineFailedError(f"{weights.name}: {error}; {repair} --force") from None
    if record.key != wanted:
        raise EngineFailedError(
            f"{weights.name}: {path} was {'; '.join(record.key.differences(wanted))}; {repair} --force"
        )
    if size != record.plan_bytes:
        raise EngineFailedError(
            f"{weights.name}: {path} has {size} bytes, and its record says {record.plan_bytes}; {repair} --force"
        )
    return Plan(path, record)


def read_record(path: Path) -> Record:
    """Read one record; raises OSError, and ValueError that names the file and says what is wrong with it."""
    with path.open("rb") as file:
        content = file.read(MAX_RECORD_BYTES + 1)
    if len(content) > MAX_RECORD_BYTES:
        raise ValueError(f"{path}: longer than {MAX_RECORD_BYTES} bytes: it is no record of an engine")
    try:
        return msgspec.json.decode(content, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: no record of an engine: {error}") from None


def stored(folder: Path) -> list[tuple[Path, Record | None]]:
    """Return every engine's plan and its record, None where that cannot be used. Raises OSError."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == PLAN and not path.name.startswith("."))
    except FileNotFoundError:
        return []
    return [(path, _record_of(path)) for path in paths]


def _record_of(path: Path) -> Record | None:
    try:
        return read_record(path.with_suffix(RECORD))
    except (OSError, ValueError):
        return None


def _instead(folder: Path, wanted: Key) -> str:
    """Say what the folder has of this model: the engine that differs least, or none."""
    try:
        records = [record for _, record in stored(folder) if record is not None]
    except OSError as error:
        return f"{folder} cannot be read: {error.strerror}"
    others = [record.key.differences(wanted) for record in records if record.key.onnx_sha256 == wanted.onnx_sha256]
    if not others:
        return "no engine of it was built on this device"
    closest: list[str] = min(others, key=len)
    return f"its engine was {'; '.join(closest)}"


def _shown(name: str, value: Any) -> str:
    if name == "onnx_sha256":
        return str(value)[:_DIGITS]
    if name == "workspace_bytes":
        return f"{value / 1e6:g}"
    if name == "lean_tactics":
        return "without" if value else "with"
    return str(value)
