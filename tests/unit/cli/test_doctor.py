"""`jetsel doctor` in process: what each check says of a good installation and of a bad one, and what it suggests."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jetsel import __version__
from jetsel.base.config import Config, Models, Power, ServerSettings
from jetsel.base.errors import ModelUnavailableError
from jetsel.base.host_settings import HostSettings
from jetsel.cli.checks import Finding, Subject, board, daemon, installation, models, tensorrt
from jetsel.cli.doctor import subject_of
from jetsel.engines.building.plans import wanted_key
from jetsel.power.idle import save_idle
from jetsel.power.machine import Fact, Machine
from jetsel.zoo import STARTER
from tests.contract.opening import weights_of
from tests.data.sysfs_trees import tree, write
from tests.unit.client.peer import Peer, daemon_like
from tests.unit.engines.building.test_plans import put as put_engine
from tests.unit.power.machines import IDLE, TX2, put, tx2

GPU = {"name": "NVIDIA Tegra X2", "compute_capability": "6.2", "memory_bytes": 8_235_577_344, "is_integrated": True}
GOOD = {
    "interpreter": "/usr/bin/python3",
    "python": "3.6.9",
    "version": "8.2.1.8",
    "libraries": {"numpy": "1.13.3", "pycuda": "2022.1"},
    "gpu": GPU,
}
BAD = ModelUnavailableError("the engine host cannot serve: tensorrt (why); install it")


def found(check: Callable[[Subject], Iterator[Finding]], hosted: Any = BAD, **sections: Any) -> dict[str, Finding]:
    """What a check finds, by name, where TensorRT's interpreter has been asked already."""
    subject = Subject(None, Config(**sections))
    subject.tensorrt = hosted
    return {finding.name: finding for finding in check(subject)}


# The configuration, what jetsel runs with, and the daemon.


def test_a_file_that_cannot_be_read_fails_and_the_defaults_stand_in(tmp_path: Path) -> None:
    path = tmp_path / "jetsel.toml"
    path.write_text("[host]\nprecision = 'fp32'\n")
    assert next(installation(subject_of(path))) == Finding("configuration", "ok", str(path))
    path.write_text("[server]\nworkes = 1\n")
    subject = subject_of(path)
    assert subject.config == Config()
    finding = next(installation(subject))
    assert (finding.state, "server.workes" in finding.said) == ("failed", True)
    assert "jetsel config" in (finding.repair or "")


def test_the_socket_a_daemon_of_another_version_and_its_models_that_do_not_run_are_told(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with Peer(path, daemon_like) as peer:
        told = found(daemon, server=ServerSettings(endpoint=peer.endpoint))
        assert told["socket"].said.startswith(f"{path}: owner {path.owner()}, group {path.group()}, mode ")
    states = {name: finding.state for name, finding in told.items()}
    assert states == {"socket": "ok", "answers": "ok", "version": "warning", "big": "failed"}
    assert __version__ in told["version"].said
    assert "out of memory" in told["big"].said


# The models.


def test_a_broken_manifest_is_a_warning_and_a_broken_model_a_failure(tmp_path: Path) -> None:
    shutil.copytree(STARTER, tmp_path / "zoo")
    (tmp_path / "zoo/xs.onnx").write_bytes(b"not what it was")
    (tmp_path / "zoo/none.json").write_text("{")
    told = found(models, models=Models(starter=False, paths=[str(tmp_path / "zoo")]))
    assert (told["family starter"].state, told["xs"].state, told["left out"].state) == ("ok", "failed", "warning")
    assert (told["s"].state, " ms per image" in told["s"].said) == ("ok", True)


# TensorRT and its engines.


@pytest.mark.parametrize(
    ("settings", "state"),
    [(Models(), "info"), (Models(backend="tensorrt"), "failed"), (Models(backends={"xl": "tensorrt"}), "failed")],
    ids=["not used", "used by all", "used by one"],
)
def test_what_is_missing_is_told_and_a_failure_only_where_tensorrt_is_used(settings: Models, state: str) -> None:
    told = found(tensorrt, BAD, models=settings)["Python"]
    assert (told.state, told.repair) == (state, "install it")
    assert "tensorrt (why)" in told.said


def test_engines_that_fit_are_stale_or_are_missing_are_told_apart(tmp_path: Path) -> None:
    about, settings = {"version": "8.2.1.8", "gpu": GPU}, HostSettings(engines=str(tmp_path))
    backends = dict.fromkeys(("xs", "s", "xl"), "tensorrt")
    put_engine(tmp_path, wanted_key(weights_of(STARTER / "xl.onnx"), settings, about))
    put_engine(tmp_path, wanted_key(weights_of(STARTER / "s.onnx"), settings, {**about, "version": "8.0.1.6"}))
    told = found(tensorrt, GOOD, models=Models(backends=backends), host=settings)
    assert list(told) == ["Python", "xs", "s", "xl"]
    assert told["xl"].state == "ok"
    assert (told["s"].state, "8.0.1.6" in told["s"].said) == ("failed", True)
    assert (told["xs"].state, told["xs"].repair) == ("failed", "run: jetsel models build xs")


# The board and its sensors.


def on(sysfs: Path, **settings: Any) -> dict[str, Finding]:
    return found(board, power=Power(sysfs=str(sysfs), **settings))


def test_a_board_tells_its_model_its_power_mode_its_rails_and_their_total(tmp_path: Path) -> None:
    told = on(tree("jetson-tx2"))
    assert told["sensors"].said.startswith("jetson-tx2: ")
    assert "VDD_SYS_GPU" in told["sensors"].said
    assert told["total"] == Finding("total", "ok", "VDD_IN")
    told = on(tx2(tmp_path))
    assert told["model"].state == "ok"
    assert "L4T 32.7.1" in told["model"].said
    assert told["power mode"] == Finding("power mode", "ok", "3 MAXP_CORE_ARM")


def test_a_machine_without_a_sensor_is_no_failure_unless_one_is_asked_for(tmp_path: Path) -> None:
    for settings, state in (({}, "info"), ({"sensor": "none"}, "info"), ({"sensor": "ina3221"}, "warning")):
        assert on(tmp_path, **settings)["total"].state == state
    assert on(tmp_path, budget_w=7.5)["total"].state == "warning"
    assert {finding.state for finding in on(tmp_path).values()} == {"info"}


def test_idle_power_is_told_where_it_was_measured_in_this_power_mode(tmp_path: Path) -> None:
    sysfs = write("jetson-tx2", tmp_path / "sys")
    put(tmp_path, {name: TX2[name] for name in ("var/lib/nvpmodel/status", "etc/nvpmodel.conf")})
    kept = {"calibration": str(tmp_path / "power")}
    missing = on(sysfs, **kept)["idle power"]
    assert (missing.state, "jetsel power calibrate" in (missing.repair or "")) == ("warning", True)
    shown = {"mean_w": 3.125, "half_width_w": 0.0123, "power_mode": "3 MAXP_CORE_ARM"}
    measured = msgspec.structs.replace(IDLE, **shown, facts=Machine(sysfs).facts())
    save_idle(measured, tmp_path / "power")
    told = on(sysfs, **kept)["idle power"]
    assert (told.state, told.said.startswith("3.12 W ± 0.012 W")) == ("ok", True)
    put(sysfs, {"devices/system/cpu/online": "0\n"})
    with_cores = msgspec.structs.replace(Machine(sysfs).facts(), cores=Fact("0-5"))
    save_idle(msgspec.structs.replace(measured, facts=with_cores), tmp_path / "power")
    stale = on(sysfs, **kept)["idle power"]
    assert (stale.state, "cores" in stale.said) == ("warning", True)
