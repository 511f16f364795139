"""Keys, records and the folder of engines: what fits is found, and what does not says why and what to run."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel.base.host_settings import HostSettings
from jetsel.base.weights import Weights
from jetsel.engines.base import EngineFailedError
from jetsel.engines.building import plans
from jetsel.engines.building.plans import Check, Key, PlanRecord, find, wanted_key

ONNX = "0123456789ab" + "c" * 52
WEIGHTS = Weights("xl", Path("/nowhere/xl.onnx"), ONNX, 64, 64, 100)
ABOUT: dict[str, Any] = {
    "version": "8.2.1.8",
    "gpu": {"name": "NVIDIA Tegra X2", "compute_capability": "6.2", "is_integrated": True},
}
HOST = HostSettings(engines="/nonexistent")
PLAN = b"a plan of a few bytes"


def record(key: Key, **changes: Any) -> PlanRecord:
    check = Check(photographs=5, source="drawings", agreement=1.0, largest_difference=0.01, spread=10.0, device_ms=None)
    made = PlanRecord(
        model="xl",
        key=key,
        plan_sha256=hashlib.sha256(PLAN).hexdigest(),
        plan_bytes=len(PLAN),
        build_s=1.5,
        built="2026-11-21T12:00:00+00:00",
        libraries={"numpy": "1.19.4", "cuda": None},
        cost_bytes=1000,
        scratch_bytes=None,
        check=check,
    )
    return msgspec.structs.replace(made, **changes)


def put(folder: Path, key: Key, **changes: Any) -> Path:
    with plans.working_folder(folder, 0) as work:
        plan = work / f"{key.stem}.plan"
        plan.write_bytes(PLAN)
        return plans.install(work, plan, record(key, **changes)).path


def refusal(folder: Path, host: HostSettings = HOST, said: dict[str, Any] = ABOUT) -> str:
    with pytest.raises(EngineFailedError) as raised:
        find(msgspec.structs.replace(host, engines=str(folder)), WEIGHTS, said)
    return str(raised.value)


@pytest.mark.parametrize(
    "change",
    [
        {"onnx_sha256": "f" * 64, "input_px": (64, 65)},
        {"tensorrt": "8.2.1.9"},
        {"gpu": "Orin"},
        {"compute_capability": "8.7"},
        {"precision": "fp32"},
        {"max_batch": 9},
        {"workspace_bytes": 1},
        {"lean_tactics": False},
    ],
)
def test_each_part_of_a_key_changes_its_digest_and_is_told(change: dict[str, Any]) -> None:
    key = wanted_key(WEIGHTS, HOST, ABOUT)
    other = msgspec.structs.replace(key, **change)
    assert other.digest() != key.digest()
    assert next(iter(change)) in other.differences(key)
    assert key.differences(key) == ""


def test_a_host_without_a_gpu_gives_no_key() -> None:
    with pytest.raises(EngineFailedError, match=r"sees no GPU; see: jetsel doctor"):
        wanted_key(WEIGHTS, HOST, {"version": "8.2.1.8", "gpu": None})


def test_what_was_installed_is_found_with_what_the_host_is_to_be_told(tmp_path: Path) -> None:
    path = put(tmp_path, wanted_key(WEIGHTS, HOST, ABOUT))
    assert path.read_bytes() == PLAN
    assert find(msgspec.structs.replace(HOST, engines=str(tmp_path)), WEIGHTS, ABOUT).to_load(WEIGHTS) == {
        "name": "xl",
        "classes": 100,
        "input_px": [64, 64],
        "path": str(path),
        "sha256": hashlib.sha256(PLAN).hexdigest(),
        "expected_bytes": 1000,
    }


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b" " * (plans.MAX_RECORD_BYTES + 1), None])
def test_a_record_that_is_damaged_or_of_another_engine_is_named_with_the_repair(
    tmp_path: Path, content: bytes | None
) -> None:
    path = put(tmp_path, wanted_key(WEIGHTS, HOST, ABOUT)).with_suffix(".json")
    path.write_bytes(path.read_bytes().replace(b"8.2.1.8", b"8.0.1.6") if content is None else content)
    said = refusal(tmp_path)
    assert str(path.with_suffix("")) in said
    assert said.endswith("run: jetsel models build xl --force")
    assert ("tensorrt 8.0.1.6 and not 8.2.1.8; run:" in said) == (content is None)


@pytest.mark.parametrize("ending", [".plan", ".json"])
def test_half_of_an_engine_is_none(tmp_path: Path, ending: str) -> None:
    put(tmp_path, wanted_key(WEIGHTS, HOST, ABOUT)).with_suffix(ending).unlink()
    assert "no engine of it was built" in refusal(tmp_path)


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = pytest.raises(EngineFailedError, match=r"cannot be saved there \(Not a directory\).*\[host\] engines")
    with refused, plans.working_folder(tmp_path / "file" / "engines", 0):
        pass


def test_a_full_disk_is_told_before_anything_is_built(tmp_path: Path) -> None:
    refused = pytest.raises(EngineFailedError, match=r"MB free, and a build may need 1152921504607 MB: free some space")
    with refused, plans.working_folder(tmp_path, 1 << 60):
        pass


def test_the_next_builder_clears_away_what_a_killed_one_left(tmp_path: Path) -> None:
    kept = put(tmp_path, wanted_key(WEIGHTS, HOST, ABOUT))
    (tmp_path / "timing-x.cache.77").write_text("half")
    (tmp_path / "timing-x.cache").write_text("whole")
    with plans.working_folder(tmp_path, 0) as work:
        assert {path.name for path in tmp_path.iterdir()} == {
            work.name,
            kept.name,
            kept.with_suffix(".json").name,
            "timing-x.cache",
        }


def test_timings_are_kept_for_each_device_and_version_apart() -> None:
    key = wanted_key(WEIGHTS, HOST, ABOUT)
    name = plans.timing_cache(Path("/e"), key)
    assert name == Path("/e/timing-NVIDIA-Tegra-X2-6.2-8.2.1.8.cache")
    hostile = msgspec.structs.replace(key, gpu="../../etc/passwd", tensorrt="8/2")
    assert plans.timing_cache(Path("/e"), hostile).parent == Path("/e")
