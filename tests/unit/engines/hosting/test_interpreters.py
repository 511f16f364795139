"""The interpreter of the engine host: where it is looked for, what is said of each candidate, and which is taken."""

from __future__ import annotations

import signal
import sys
import time
import venv
from pathlib import Path

import pytest

from jetsel.engines import EngineFailedError
from jetsel.engines.hosting.interpreters import Probe, candidates, choose, environment, probe, probe_all
from jetsel.errors import ConfigError
from tests.unit.engines.hosting.programs import program, says

GOOD = says("3.6.9", {"numpy": "1.13.3", "tensorrt": "8.2.1.8", "pycuda": "2022.1"})
LONG_S = 60.0


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


# Where it is looked for.


def test_the_boards_own_comes_first_then_the_versions_of_jetpack_then_the_others(tmp_path: Path) -> None:
    board, local = tmp_path / "board", tmp_path / "local"
    for path in ("python3", "python3.8"):
        executable(board / path)
    for path in ("python3", "python3.6", "python3.7", "python3.12", "python3.10", "python3.9", "python3.6m", "python2"):
        executable(local / path)
    own = executable(tmp_path / "own/bin/python")
    names = ["local/python3.6", "board/python3.8", "local/python3.10", "local/python3.12", "local/python3.7"]
    others = [str(tmp_path / name) for name in ["board/python3", *names, "local/python3.9"]]
    assert candidates("tensorrt", None, [board, local], str(own)) == [*others, str(own)]
    assert candidates("onnxruntime", None, [board, local], str(own)) == [str(own), *others]


def test_where_one_is_set_only_that_one_is_asked(tmp_path: Path) -> None:
    executable(tmp_path / "python3")
    assert candidates("tensorrt", "/not/there", [tmp_path], str(tmp_path / "python3")) == ["/not/there"]


def test_what_links_to_one_interpreter_is_asked_once(tmp_path: Path) -> None:
    real = executable(tmp_path / "lib/python3.8")
    for folder in ("usr", "bin"):
        (tmp_path / folder).mkdir()
        for name in ("python3", "python3.8"):
            (tmp_path / folder / name).symlink_to(real)
    found = candidates("tensorrt", None, [tmp_path / "usr", tmp_path / "bin", tmp_path / "usr"], str(real))
    assert found == [str(tmp_path / "usr/python3")]


def test_a_virtual_environment_is_an_interpreter_of_its_own(tmp_path: Path) -> None:
    base = executable(tmp_path / "usr/python3")
    for name in ("one", "other"):
        venv.create(tmp_path / name, symlinks=True, with_pip=False)
        for link in (tmp_path / name / "bin").glob("python*"):
            link.unlink()
        for link in ("python3", "python3.8"):
            (tmp_path / name / "bin" / link).symlink_to(base)
    folders = [tmp_path / "usr", tmp_path / "one/bin", tmp_path / "other/bin"]
    own = str(tmp_path / "other/bin/python3")
    found = candidates("tensorrt", None, folders, own)
    assert found == [str(base), str(tmp_path / "one/bin/python3.8"), str(tmp_path / "other/bin/python3.8")]


def test_what_is_no_program_is_no_candidate(tmp_path: Path) -> None:
    (tmp_path / "python3").mkdir()
    (tmp_path / "python3.8").write_text("")
    (tmp_path / "python3.10").symlink_to(tmp_path / "nowhere")
    assert candidates("tensorrt", None, [tmp_path, tmp_path / "absent"], str(tmp_path / "gone")) == []


# What each offers.


def test_this_interpreter_hosts_onnx_runtime() -> None:
    found = probe(sys.executable, "onnxruntime")
    assert found.usable, found.reason
    assert (found.reason, found.repair, found.gpu, found.hidden) == (None, None, None, {})
    assert found.python == ".".join(map(str, sys.version_info[:3]))
    import numpy

    assert found.modules["numpy"].version == numpy.__version__
    assert Path(found.modules["numpy"].path or "") == Path(numpy.__file__)


def test_what_the_host_says_is_returned_as_it_is(tmp_path: Path) -> None:
    gpu = {"name": "NVIDIA Tegra X2", "compute_capability": "6.2", "fast_int8": False}
    modules = {"numpy": "1.13.3", "tensorrt": "8.2.1.8", "pycuda": "2022.1"}
    found = probe(program(tmp_path / "python", f"echo hello; {says('3.6.9', modules, gpu=gpu)}; echo bye"), "tensorrt")
    assert (found.usable, found.python, found.gpu) == (True, "3.6.9", gpu)
    assert {name: module.version for name, module in found.modules.items()} == modules


def test_a_module_that_is_not_installed_is_named_with_the_command_that_installs_it(tmp_path: Path) -> None:
    path = program(tmp_path / "python3.6", says("3.6.9", {"numpy": None, "tensorrt": "8.2.1.8", "pycuda": None}))
    found = probe(path, "tensorrt")
    assert found.reason == "numpy and pycuda are not installed for it"
    # 1.19.5 is the last for 3.6, and dies on a Jetson
    install = f"sudo env PATH=/usr/local/cuda/bin:$PATH {path} -m pip install numpy==1.19.4 pycuda==2022.1"
    assert found.repair == install
    assert not found.usable


def test_tensorrt_is_never_to_come_from_pip(tmp_path: Path) -> None:
    path = program(tmp_path / "python", says("3.10.2", {"numpy": "1.21.5", "tensorrt": None, "pycuda": "2024.1"}))
    found = probe(path, "tensorrt")
    assert found.reason == "tensorrt is not installed for it"
    assert found.repair is not None
    assert "apt install python3-libnvinfer" in found.repair
    assert "pip install" not in found.repair


def test_a_module_that_is_there_and_does_not_import_has_its_error(tmp_path: Path) -> None:
    broken = {"version": None, "path": None, "error": "ImportError: libnvinfer.so.8: cannot open shared object file"}
    fine = {"version": "1", "path": "/x.py", "error": None}
    modules = {"numpy": fine, "tensorrt": broken, "pycuda": fine}
    found = probe(program(tmp_path / "python", says("3.8.10", {}, modules=modules, usable=False)), "tensorrt")
    assert found.reason == f"tensorrt does not import: {broken['error']}"


def test_a_device_that_does_not_start_is_the_hosts_own_reason(tmp_path: Path) -> None:
    modules = {"numpy": "1", "tensorrt": "8", "pycuda": "1"}
    path = program(tmp_path / "python", says("3.8.10", modules, usable=False, reason="no CUDA-capable device"))
    found = probe(path, "tensorrt")
    assert found.reason == "no CUDA-capable device"
    assert found.repair is not None
    assert f"{path} -I " in found.repair
    assert found.repair.endswith("host.py --probe --backend tensorrt")


def test_what_only_the_user_installed_is_told_with_its_folder_and_the_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = str(Path(sys.executable).resolve())  # a virtual environment sees no user's modules
    site = tmp_path / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (site / "pycuda").mkdir(parents=True)
    (site / "pycuda/__init__.py").write_text('VERSION_TEXT = "2022.1"\n')
    monkeypatch.setenv("PYTHONUSERBASE", str(tmp_path))
    found = probe(base, "tensorrt")
    assert not found.usable
    assert list(found.hidden) == ["pycuda"]
    assert f"pycuda 2022.1 is seen only without -I, in {site}" in (found.reason or "")
    monkeypatch.delenv("PYTHONUSERBASE")
    assert probe(base, "tensorrt").hidden == {}


def test_the_repair_of_what_is_hidden_is_an_installation_for_all_or_a_virtual_environment(tmp_path: Path) -> None:
    without = says("3.6.9", {"numpy": "1.13.3", "tensorrt": "8.2.1.8", "pycuda": None})
    path = program(tmp_path / "python3.6", without, loose=GOOD)
    found = probe(path, "tensorrt")
    hidden = "pycuda 2022.1 is seen only without -I, in /site, and the engine host is started with it"
    assert found.reason == hidden
    assert found.repair is not None
    assert found.repair.startswith(f"sudo env PATH=/usr/local/cuda/bin:$PATH {path} -m pip install pycuda==2022.1")
    assert "set [host] interpreter to the python of a virtual environment" in found.repair


def test_a_python_that_the_distribution_manages_gets_a_virtual_environment_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "lib/python3.12").mkdir(parents=True)
    (tmp_path / "lib/python3.12/EXTERNALLY-MANAGED").touch()
    lacking = says("3.12.3", {"numpy": "1.26.4", "tensorrt": "10.13.3", "pycuda": None})
    path = program(tmp_path / "bin/python3.12", lacking)
    steps = (probe(path, "tensorrt").repair or "").split("; then ")
    assert steps == [
        f"sudo {path} -m venv --system-site-packages /opt/jetsel-host",
        "sudo env PATH=/usr/local/cuda/bin:$PATH /opt/jetsel-host/bin/python -m pip install pycuda",
        'set [host] interpreter = "/opt/jetsel-host/bin/python"',
    ]


# What is no use at all.


def test_one_that_is_not_there_or_may_not_be_run_says_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "noise").write_bytes(b"\x7fELF")
    (tmp_path / "noise").chmod(0o755)
    expected = {"none": "No such file or directory", "text": "Permission denied", "noise": "Exec format error"}
    for name, said in expected.items():
        found = probe(str(tmp_path / name), "tensorrt")
        assert found.reason == f"it cannot be started: {said}"
        assert (found.usable, found.python) == (False, None)
        assert "[host] interpreter" in (found.repair or "")


def test_an_illegal_instruction_names_the_numpy_that_is_known_for_it(tmp_path: Path) -> None:
    found = probe(program(tmp_path / "python3.6", "kill -ILL $$", version="printf 3.6.9"), "tensorrt")
    assert found.python == "3.6.9"
    assert "it was ended by SIGILL (Illegal instruction)" in (found.reason or "")
    assert "numpy==1.19.4" in (found.repair or "")
    assert "OPENBLAS_CORETYPE=ARMV8" in (found.repair or "")


def test_another_signal_names_itself_and_how_to_see_more(tmp_path: Path) -> None:
    found = probe(program(tmp_path / "python", "echo loading >&2; kill -SEGV $$"), "tensorrt")
    assert found.reason == f"it was ended by SIGSEGV ({signal.strsignal(signal.SIGSEGV)}): loading"
    assert "by hand" in (found.repair or "")


def test_one_that_hangs_is_left_after_the_limit(tmp_path: Path) -> None:
    began = time.monotonic()
    found = probe(program(tmp_path / "python", "sleep 1000"), "tensorrt", timeout_s=0.5)
    assert found.reason == "it did not answer within 0.5 s and was killed"
    assert time.monotonic() - began < LONG_S


def test_one_that_prints_without_end_is_stopped(tmp_path: Path) -> None:
    found = probe(program(tmp_path / "python", "yes"), "tensorrt")
    assert found.reason == "it printed more than 65536 bytes and was killed"


def test_one_that_prints_something_else_is_quoted(tmp_path: Path) -> None:
    for printed in ("echo 'Welcome  to the board'", "echo '[1, 2]'", "echo '{\"python\": 3}'"):
        found = probe(program(tmp_path / "python", printed), "tensorrt")
        assert (found.reason or "").startswith("it printed no answer, but ")
    assert probe(program(tmp_path / "python", "true"), "tensorrt").reason == "it printed no answer"


def test_an_answer_of_one_that_failed_afterwards_does_not_count(tmp_path: Path) -> None:
    found = probe(program(tmp_path / "python", f"{GOOD}; echo 'no memory' >&2; exit 7"), "tensorrt")
    assert (found.usable, found.reason) == (False, "it left with exit status 7: no memory")


def test_python_2_and_one_before_36_are_too_old(tmp_path: Path) -> None:
    refusing = "echo 'Unknown option: -I' >&2; exit 2"
    two = probe(program(tmp_path / "python2", refusing, version="printf 2.7.18"), "tensorrt")
    assert (two.python, two.reason) == ("2.7.18", "Python 2.7.18 is too old: the engine host needs 3.6 or later")
    modules = {"numpy": "1.11.0", "tensorrt": "4", "pycuda": "2018.1"}
    old = probe(program(tmp_path / "python3", says("3.5.2", modules)), "tensorrt")
    assert (old.usable, old.reason) == (False, "Python 3.5.2 is too old: the engine host needs 3.6 or later")


def test_a_program_that_is_no_python_is_told_from_one_that_fails(tmp_path: Path) -> None:
    found = probe(program(tmp_path / "python", "exit 4", version="echo fish"), "tensorrt")
    assert (found.python, found.reason) == (None, "it is no Python that runs: it left with exit status 4")


# Which is taken.


def test_several_are_asked_at_once_and_stay_in_order(tmp_path: Path) -> None:
    good = program(tmp_path / "good", GOOD)
    slow = program(tmp_path / "slow", f"sleep 0.5; {GOOD}")
    assert [found.path for found in probe_all([slow, good, "/none"], "tensorrt")] == [slow, good, "/none"]


def test_the_first_that_is_of_use_is_taken_and_those_behind_it_are_not_asked(tmp_path: Path) -> None:
    program(tmp_path / "python3", GOOD)
    program(tmp_path / "python3.8", f"touch {tmp_path}/asked; {GOOD}")
    assert choose("tensorrt", folders=[tmp_path]).path == str(tmp_path / "python3")
    assert not (tmp_path / "asked").exists()


def test_one_of_no_use_is_passed_over(tmp_path: Path) -> None:
    program(tmp_path / "python3", "exit 1")
    program(tmp_path / "python3.6", "kill -ILL $$")
    program(tmp_path / "python3.10", GOOD)
    program(tmp_path / "python3.12", GOOD)
    assert choose("tensorrt", folders=[tmp_path]).path == str(tmp_path / "python3.10")


def test_where_none_is_of_use_one_line_says_why_of_each_and_who_knows_more(tmp_path: Path) -> None:
    program(tmp_path / "python3", "exit 1")
    lacking = says("3.8.10", {"numpy": "1.17", "tensorrt": "8", "pycuda": None})
    own = program(tmp_path / "own", lacking)
    with pytest.raises(EngineFailedError) as raised:
        choose("tensorrt", folders=[tmp_path], own=own)
    said = str(raised.value)
    assert f"{tmp_path}/python3: it left with exit status 1; {own}: pycuda is not installed for it" in said
    assert "jetsel doctor" in said
    assert "\n" not in said


def test_where_there_is_no_python_at_all_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(EngineFailedError, match="there is no Python 3"):
        choose("tensorrt", folders=[tmp_path], own=str(tmp_path / "gone"))


def test_one_that_is_set_wrongly_is_the_configurations_fault(tmp_path: Path) -> None:
    old = program(tmp_path / "old", "exit 2", version="printf 2.7.18")
    for path in (str(tmp_path / "none"), old):
        with pytest.raises(ConfigError, match=r"host.interpreter: .*jetsel doctor"):
            choose("tensorrt", path)


def test_one_that_is_set_and_lacks_a_module_is_not(tmp_path: Path) -> None:
    path = program(tmp_path / "python", says("3.8.10", {"numpy": "1.17", "tensorrt": "8", "pycuda": None}))
    program(tmp_path / "python3", GOOD)  # never asked: another one is set
    with pytest.raises(EngineFailedError, match=r"pycuda is not installed for it; sudo .* -m pip install pycuda"):
        choose("tensorrt", path, folders=[tmp_path])


def test_one_that_is_set_and_of_use_is_taken(tmp_path: Path) -> None:
    path = program(tmp_path / "python", GOOD)
    found = choose("tensorrt", path)
    assert isinstance(found, Probe)
    assert found.path == path


# What it is started with.


def test_the_owners_environment_stands_beside_what_the_host_needs() -> None:
    found = environment({"HOME": "/home/owner", "OPENBLAS_NUM_THREADS": "4"}, "x86_64")
    assert found["HOME"] == "/home/owner"
    assert found["OPENBLAS_NUM_THREADS"] == "4"
    assert found["CUDA_MODULE_LOADING"] == "LAZY"
    assert found["ORT_DISABLE_TELEMETRY"] == "1"


def test_only_an_arm_board_gets_the_processor_that_numpy_misreads() -> None:
    assert environment({}, "aarch64")["OPENBLAS_CORETYPE"] == "ARMV8"
    assert environment({"OPENBLAS_CORETYPE": "CORTEXA57"}, "aarch64")["OPENBLAS_CORETYPE"] == "CORTEXA57"
    assert "OPENBLAS_CORETYPE" not in environment({}, "x86_64")


def test_a_candidate_is_probed_with_that_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_MODULE_LOADING", raising=False)
    path = program(tmp_path / "python", f'test "$CUDA_MODULE_LOADING" = LAZY && {GOOD}')
    assert probe(path, "tensorrt").usable
