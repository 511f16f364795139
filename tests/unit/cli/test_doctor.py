"""`jetsel doctor` in process: what each check says of a good installation and of a bad one, and what it suggests."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from jetsel import __version__
from jetsel.cli.app import app
from jetsel.cli.doctor import examine, subject_of
from jetsel.cli.doctoring.board import board, memory
from jetsel.cli.doctoring.checks import CHECKS
from jetsel.cli.doctoring.finding import Check, Finding, Subject, size
from jetsel.cli.doctoring.folders import folders
from jetsel.cli.doctoring.hosting import interpreters, tensorrt
from jetsel.cli.doctoring.installation import configuration, installation
from jetsel.cli.doctoring.serving import calibrations, daemon, models
from jetsel.config import Config, Host, Models, Server
from jetsel.engines.hosting.interpreters import Module, Probe
from jetsel.zoo import STARTER
from tests.unit.client.peer import Peer, daemon_like

TX2 = {
    "name": "NVIDIA Tegra X2",
    "compute_capability": "6.2",
    "memory_bytes": 8_235_577_344,
    "is_integrated": True,
    "fast_fp16": True,
    "fast_int8": False,
}
NOBODY = 65534
MODULES = {"numpy": "1.13.3", "tensorrt": "8.2.1.8", "pycuda": "2022.1"}
GOOD = Probe(
    "/usr/bin/python3",
    usable=True,
    python="3.6.9",
    modules={name: Module(version, None, None) for name, version in MODULES.items()},
    gpu=TX2,
)
BAD = Probe("/usr/bin/python3.8", python="3.8.0", reason="tensorrt is not installed for it", repair="install it")
DEFAULTS = Config()
USING = Config(models=Models(backend="tensorrt"))


def subject(config: Config = DEFAULTS, probes: Iterable[Probe] = (), root: Path = Path("/")) -> Subject:
    """An installation whose interpreters have been asked already; the same answer for each backend."""
    made = Subject(None, config, root=root)
    made.probes = {"tensorrt": list(probes), "onnxruntime": list(probes)}
    return made


def by_name(findings: Iterator[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


# The configuration and what jetsel runs with.


def test_the_file_that_applies_is_named(tmp_path: Path) -> None:
    assert next(configuration(Subject(None, Config()))).state == "ok"
    path = tmp_path / "jetsel.toml"
    path.write_text("[host]\nprecision = 'fp32'\n")
    found = subject_of(path)
    assert found.config.host.precision == "fp32"
    assert next(configuration(found)) == Finding("file", "ok", str(path))


def test_a_file_that_cannot_be_read_fails_and_the_defaults_stand_in(tmp_path: Path) -> None:
    path = tmp_path / "jetsel.toml"
    path.write_text("[server]\nworkes = 1\n")
    found = subject_of(path)
    assert found.config == Config()
    finding = next(configuration(found))
    assert (finding.state, "server.workes" in finding.said) == ("failed", True)
    assert "jetsel config" in (finding.repair or "")


def test_the_versions_of_jetsel_of_python_and_of_the_libraries_are_told() -> None:
    found = by_name(installation(subject()))
    import cv2
    import numpy
    import onnxruntime
    import zmq

    versions = {"numpy": numpy.__version__, "opencv": cv2.__version__, "onnxruntime": onnxruntime.__version__}
    for name, version in (versions | {"pyzmq": zmq.__version__, "jetsel": __version__}).items():
        assert found[name] == Finding(name, "ok", version)
    assert sys.executable in found["python"].said


def test_a_library_that_does_not_import_fails_with_its_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zmq.py").write_text("raise ImportError('libzmq.so.5: cannot open shared object file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "zmq", raising=False)
    found = by_name(installation(subject()))["pyzmq"]
    assert (found.state, "libzmq.so.5" in found.said) == ("failed", True)
    assert "pip install" in (found.repair or "")


# The engine host.


def test_the_interpreter_that_is_taken_is_told_with_its_libraries() -> None:
    found = by_name(interpreters(subject(USING, [BAD, GOOD, GOOD])))
    assert found["tensorrt"] == Finding("tensorrt", "ok", "hosted by /usr/bin/python3")
    good = found["tensorrt: /usr/bin/python3"]
    assert "Python 3.6.9, numpy 1.13.3, tensorrt 8.2.1.8, pycuda 2022.1" in good.said
    refused = found["tensorrt: /usr/bin/python3.8"]
    assert refused.said == "refused: Python 3.8.0; tensorrt is not installed for it"
    assert (refused.state, refused.repair) == ("info", None)  # another one is taken


def test_without_an_interpreter_for_it_tensorrt_fails_only_where_it_is_used() -> None:
    for config, state, repair in ((USING, "failed", "repair one of those below"), (Config(), "info", None)):
        found = by_name(interpreters(subject(config, [BAD])))
        assert (found["tensorrt"].state, found["tensorrt"].repair) == (state, repair)
        assert found["tensorrt: /usr/bin/python3.8"].repair == "install it"


def test_one_model_on_tensorrt_is_use_enough() -> None:
    config = Config(models=Models(backends={"xl": "tensorrt"}))
    assert by_name(interpreters(subject(config, [BAD])))["tensorrt"].state == "failed"


def test_what_is_hidden_keeps_its_repair_also_where_another_is_taken() -> None:
    hidden = {"pycuda": Module("2022.1", "/home/x/pycuda/__init__.py", None)}
    user = Probe("/usr/bin/python3.8", python="3.8.0", reason="seen only without -I", repair="for all", hidden=hidden)
    assert by_name(interpreters(subject(USING, [user, GOOD])))["tensorrt: /usr/bin/python3.8"].repair == "for all"


def test_tensorrts_version_and_the_gpus_precisions_are_told() -> None:
    found = by_name(tensorrt(subject(USING, [GOOD])))
    assert found["version"] == Finding("version", "ok", "8.2.1.8")
    assert found["gpu"].said == "NVIDIA Tegra X2, compute capability 6.2, integrated, 8.2 GB"
    assert (found["fp16"].state, found["int8"].state) == ("ok", "info")


def test_a_precision_that_the_gpu_is_not_fast_at_is_a_warning_where_it_is_asked_for() -> None:
    int8 = Config(models=Models(backend="tensorrt"), host=Host(precision="int8"))
    found = by_name(tensorrt(subject(int8, [GOOD])))["int8"]
    assert (found.state, 'precision = "fp16"' in (found.repair or "")) == ("warning", True)
    unused = Config(host=Host(precision="int8"))
    assert by_name(tensorrt(subject(unused, [GOOD])))["int8"].state == "info"


def test_a_tensorrt_that_does_not_tell_which_precision_is_fast_warns_of_none() -> None:
    silent = msgspec.structs.replace(GOOD, gpu={**TX2, "fast_fp16": None, "fast_int8": None})
    found = by_name(tensorrt(subject(USING, [silent])))
    assert [(found[name].state, found[name].said[:9]) for name in ("fp16", "int8")] == [("info", "not known")] * 2


def test_without_a_host_nothing_is_claimed_of_tensorrt() -> None:
    assert [finding.state for finding in tensorrt(subject(USING, [BAD]))] == ["info"]


# The board.


def test_a_jetson_tells_its_model_and_its_release(tmp_path: Path) -> None:
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").write_bytes(b"NVIDIA Jetson TX2 Developer Kit\0")
    (tmp_path / "etc").mkdir()
    release = (
        "# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t186ref, EABI: aarch64, DATE: Sat Feb 19 17:07:00\n"
    )
    (tmp_path / "etc/nv_tegra_release").write_text(release)
    found = by_name(board(subject(probes=[GOOD], root=tmp_path)))
    assert found["model"] == Finding("model", "ok", "NVIDIA Jetson TX2 Developer Kit")
    assert found["L4T"] == Finding("L4T", "ok", "32.7.1, of JetPack 4.6.1")
    assert found["power mode"] == Finding("power mode", "info", "unknown (no nvpmodel status)")
    assert found["gpu"] == Finding("gpu", "ok", "NVIDIA Tegra X2")


def test_another_machine_is_no_failure(tmp_path: Path) -> None:
    assert {finding.state for finding in board(subject(root=tmp_path))} == {"info"}


@pytest.mark.parametrize(
    ("available_kb", "config", "state"),
    [(2_000_000, USING, "ok"), (200_000, USING, "warning"), (200_000, Config(), "ok")],
)
def test_too_little_memory_for_any_load_is_a_warning(
    tmp_path: Path, available_kb: int, config: Config, state: str
) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text(
        f"MemTotal:  8000000 kB\nMemAvailable: {available_kb} kB\nHugePages_Free: 0\n"
    )
    (found,) = memory(subject(config, root=tmp_path))
    assert found.state == state
    assert found.said.startswith(f"{size(available_kb * 1024)} of 8.2 GB")


def test_memory_that_is_not_told_is_not_known(tmp_path: Path) -> None:
    (found,) = memory(subject(root=tmp_path))
    assert (found.state, found.said.startswith("not known")) == ("info", True)


# What would be served.


def test_the_models_and_their_calibration_are_told() -> None:
    looked_at = subject()
    assert [(finding.name, finding.state) for finding in models(looked_at)] == [("family starter", "ok")]
    (found,) = calibrations(looked_at)
    assert (found.name, found.state) == ("family starter", "ok")
    assert found.said.startswith("shipped with the models")


def test_a_broken_manifest_is_a_warning_and_a_broken_model_a_failure(tmp_path: Path) -> None:
    shutil.copytree(STARTER, tmp_path / "zoo")
    (tmp_path / "zoo/xs.onnx").write_bytes(b"not what it was")
    (tmp_path / "zoo/none.json").write_text("{")
    found = list(models(subject(Config(models=Models(starter=False, paths=[str(tmp_path / "zoo")])))))
    states = {finding.name: finding.state for finding in found}
    assert states == {"family starter": "ok", "xs": "failed", "left out": "warning"}
    assert all(finding.repair for finding in found if finding.state != "ok")


def test_what_keeps_a_daemon_from_starting_fails() -> None:
    looked_at = subject(Config(models=Models(only=["nobody"])))
    (found,) = models(looked_at)
    assert (found.state, "models.only" in found.said) == ("failed", True)
    assert [finding.state for finding in calibrations(looked_at)] == ["info"]


def test_a_backend_that_there_is_not_fails() -> None:
    found = by_name(models(subject(Config(models=Models(backend="tensort")))))["backend"]
    assert (found.state, "'tensort'" in found.said) == ("failed", True)
    assert "tensorrt" in (found.repair or "")


def test_no_daemon_is_a_warning_with_the_command_that_starts_one(tmp_path: Path) -> None:
    config = Config(server=Server(endpoint=f"ipc://{tmp_path}/none.sock"))
    (found,) = daemon(subject(config))
    assert found.state == "warning"
    assert (found.said, found.repair) == (f"no daemon listens at {tmp_path}/none.sock", "start one with: jetsel serve")


def test_a_daemon_of_another_version_and_its_models_that_do_not_run_are_told(tmp_path: Path) -> None:
    with Peer(tmp_path / "s", daemon_like) as peer:
        found = list(daemon(subject(Config(server=Server(endpoint=peer.endpoint)))))
    assert [(finding.name, finding.state) for finding in found] == [
        ("answers", "ok"),
        ("version", "warning"),
        ("f: big", "failed"),
    ]
    assert f"9.9.9, this command is {__version__}" in found[1].said
    assert found[2].said == "unavailable: out of memory"


# The folders.


def test_folders_that_can_be_written_are_well_and_nothing_is_left_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state/calibrations").mkdir(parents=True)
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path / "state"))
    found = by_name(folders(subject()))
    assert {finding.state for finding in found.values()} == {"ok"}
    assert f"{tmp_path}/state/engines, to be made in {tmp_path}/state" in found["engines"].said
    assert "to be made" not in found["calibrations"].said
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["calibrations", "state"]


def test_a_folder_that_cannot_be_written_fails_where_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    blocked = str(tmp_path / "file/engines")
    for config, state in ((USING, "failed"), (Config(), "warning")):
        config = Config(models=config.models, host=Host(engines=blocked))
        found = by_name(folders(subject(config)))["engines"]
        assert (found.state, "Not a directory" in found.said) == (state, True)
        assert found.repair


@pytest.fixture
def not_root() -> Iterator[None]:
    """Be another user where the tests run as root, who may write everywhere."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(before)


@pytest.mark.usefixtures("not_root")
def test_a_folder_of_another_user_is_a_warning_that_names_the_owner() -> None:
    config = Config(models=Models(backend="tensorrt"), host=Host(engines="/usr/engines"))
    found = by_name(folders(subject(config)))["engines"]
    assert (found.state, found.repair) == ("warning", "ask as its owner: sudo -u root jetsel doctor")


# All of them together.


def test_a_check_that_cannot_be_made_is_a_finding_and_the_others_go_on() -> None:
    def broken(_: Subject) -> Iterator[Finding]:
        yield Finding("first", "ok", "seen")
        raise ImportError("No module named 'cv2'")

    found = list(examine(subject(), [Check("one", broken), Check("two", configuration)]))
    assert [(section, finding.name, finding.state) for section, finding in found] == [
        ("one", "first", "ok"),
        ("one", "check", "failed"),
        ("two", "file", "ok"),
    ]
    assert "cv2" in found[1][1].said


@pytest.mark.parametrize("content", ["", "[nonsense]\n"])
def test_the_exit_status_says_whether_something_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    monkeypatch.setattr("jetsel.cli.doctoring.checks.CHECKS", (Check("configuration", configuration),))
    (tmp_path / "jetsel.toml").write_text(content)
    for options in ([], ["--json"]):
        done = CliRunner().invoke(app, ["doctor", "--config", str(tmp_path / "jetsel.toml"), *options])
        assert done.exit_code == (1 if content else 0), done.output
    (found,) = json.loads(done.stdout)
    assert list(found) == ["section", "name", "state", "said", "repair"]
    assert (found["section"], found["state"]) == ("configuration", "failed" if content else "ok")


def test_every_section_is_there_once() -> None:
    sections = [check.section for check in CHECKS]
    assert len(set(sections)) == len(sections)
