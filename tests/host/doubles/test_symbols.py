"""The doubles of TensorRT offer what the real versions have, and the engine host uses nothing else unasked."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.doubles import check, derive, extract
from tests.doubles.interpreter import GENERATIONS, make_interpreter
from tests.doubles.tables import VERSIONS, real_symbols
from tests.doubles.used import read

DOUBLES = Path(check.__file__).parent
EVERY, OLD, NEW = "8.2 8.6 10 11", "8.2 8.6", "8.6 10 11"
# Read by hand from NVIDIA/TensorRT, python/src/infer, on the release branches.
FACTS = [
    ("ICudaEngine", "num_bindings", OLD),
    ("ICudaEngine", "num_io_tensors", NEW),
    ("ICudaEngine", "__len__", OLD),
    ("ICudaEngine", "device_memory_size", "8.2 8.6 10"),
    ("ICudaEngine", "device_memory_size_v2", "10 11"),
    ("ICudaEngine", "create_execution_context_without_device_memory", "8.2 8.6 10"),
    ("IExecutionContext", "execute_async_v2", OLD),
    ("IExecutionContext", "execute_async_v3", NEW),
    ("IExecutionContext", "execute_v2", EVERY),
    ("IExecutionContext", "set_device_memory", "10 11"),
    ("IBuilderConfig", "max_workspace_size", OLD),
    ("IBuilderConfig", "set_memory_pool_limit", NEW),
    ("IBuilderConfig", "int8_calibrator", "8.2 8.6 10"),
    ("IBuilderConfig", "progress_monitor", "10 11"),
    ("IBuilderConfig", "hardware_compatibility_level", NEW),
    ("IBuilderConfig", "create_timing_cache", EVERY),
    ("Builder", "build_engine", OLD),
    ("Builder", "build_serialized_network", EVERY),
    ("Builder", "platform_has_fast_int8", "8.2 8.6 10"),
    ("BuilderFlag", "FP16", "8.2 8.6 10"),
    ("BuilderFlag", "VERSION_COMPATIBLE", NEW),
    ("NetworkDefinitionCreationFlag", "EXPLICIT_BATCH", "8.2 8.6 10"),
    ("NetworkDefinitionCreationFlag", "STRONGLY_TYPED", "10 11"),
]


@pytest.mark.parametrize(("owner", "name", "versions"), FACTS)
def test_a_double_has_a_name_exactly_where_the_real_version_has_it(owner: str, name: str, versions: str) -> None:
    having = [version for version in VERSIONS if name in check.table(version)["classes"].get(owner, ())]
    assert having == versions.split()


def test_each_table_is_what_is_implemented_and_real() -> None:
    command = [sys.executable, "-m", "tests.doubles.tables", "--check"]
    ran = subprocess.run(command, cwd=DOUBLES.parents[1], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize("name", VERSIONS)
def test_no_double_offers_what_the_real_version_lacks(name: str) -> None:
    assert check.surplus(check.table(name), real_symbols(VERSIONS[name][0])) == set()


@pytest.mark.parametrize("name", GENERATIONS)
def test_what_a_double_shows_when_it_runs_is_its_table(name: str, tmp_path: Path) -> None:
    shown = extract.installed(str(make_interpreter(tmp_path / "python", name)))
    table = check.table(name)
    assert shown["version"] == table["version"]
    assert shown["module"] == table["module"]
    classes = {owner: sorted(names) for owner, names in shown["classes"].items() if owner in table["classes"]}
    classes["IHostMemory"] = sorted(set(classes["IHostMemory"]) - set(dir(bytearray)))  # whose names an instance hides
    assert classes == {owner: sorted(names) for owner, names in table["classes"].items()}


def test_the_list_of_8_2_is_that_of_8_5_without_what_came_later() -> None:
    assert real_symbols("8.2") == derive.derived()
    older, newer = real_symbols("8.2")["classes"], real_symbols("8.5.3.1")["classes"]
    assert "execute_async_v3" in newer["IExecutionContext"]
    assert "execute_async_v3" not in older["IExecutionContext"]
    assert "MemoryPoolType" in newer
    assert "MemoryPoolType" not in older


@pytest.mark.parametrize("path", sorted(DOUBLES.glob("common/*/*.py")) + sorted(DOUBLES.glob("trt*/tensorrt/*.py")))
def test_the_doubles_are_written_for_python_3_6(path: Path) -> None:
    ast.parse(path.read_text(), feature_version=(3, 6))


@pytest.fixture(scope="module")
def stored() -> dict[str, check.Listed]:
    return check.stored_lists()


@pytest.mark.parametrize("version", check.STORED)
def test_the_host_asks_for_a_name_before_it_uses_one_that_this_version_lacks(
    version: str, stored: dict[str, check.Listed]
) -> None:
    used = read(check.HOST.read_text())
    assert "Runtime" in used.module  # of the module tensorrt: the file was understood
    missing = check.absent(stored[version], used, check.known_names(stored))
    assert check.unguarded(missing, used, version, stored) == set()


def test_the_host_uses_no_name_that_nobody_has(stored: dict[str, check.Listed]) -> None:
    assert check.strangers(read(check.HOST.read_text()), stored) == set()


def test_a_misspelt_name_is_noticed(stored: dict[str, check.Listed]) -> None:
    source = "def load(engine, trt):\n    trt.Runtime\n    return engine.num_io_tensor, engine.num_io_tensors\n"
    assert check.strangers(read(source), stored) == {"num_io_tensor"}


def test_a_name_that_a_version_lacks_is_noticed_unless_it_is_asked_for(stored: dict[str, check.Listed]) -> None:
    bare = read("def size(engine):\n    return engine.device_memory_size_v2\n")
    asked = read(
        "def size(engine):\n    if hasattr(engine, 'device_memory_size_v2'):\n"
        "        return engine.device_memory_size_v2\n"
    )
    for version, expected in (("8.6.0", {"device_memory_size_v2"}), ("11.0.0.114", set())):
        missing = check.absent(stored[version], bare, check.known_names(stored))
        assert missing == expected
        assert check.unguarded(missing, bare, version, stored) == expected
        assert check.unguarded(missing, asked, version, stored) == set()


def test_asking_for_one_name_guards_those_that_came_and_went_with_it(stored: dict[str, check.Listed]) -> None:
    used = read(
        "def run(engine, context):\n    if hasattr(engine, 'num_io_tensors'):\n        context.execute_async_v3(0)\n"
        "    else:\n        context.execute_async_v2([], 0)\n        context.set_device_memory(0, 0)\n"
    )
    expected = {
        "8.2": ({"execute_async_v3", "set_device_memory"}, set()),
        "8.6.0": ({"set_device_memory"}, {"set_device_memory"}),  # 8.6 takes the branch, and has no such name
        "11.0.0.114": ({"execute_async_v2"}, set()),
    }
    for version, (missing, bare) in expected.items():
        found = check.absent(stored[version], used, check.known_names(stored))
        assert (found, check.unguarded(found, used, version, stored)) == (missing, bare)


def test_the_command_ends_with_1_where_a_name_is_used_unasked(tmp_path: Path) -> None:
    host = tmp_path / "host.py"
    host.write_text("def build(builder, network, config):\n    return builder.build_engine(network, config)\n")
    command = [sys.executable, "-m", "tests.doubles.check", "--host", str(host)]
    ran = subprocess.run(command, cwd=DOUBLES.parents[1], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "11.0.0.114: the host uses without asking, and it is not there: build_engine" in ran.stdout
    assert "8.2: the host uses without asking, and it is not there: nothing" in ran.stdout


def test_the_stored_lists_say_how_they_were_made() -> None:
    for version in check.STORED:
        made_by = json.loads((extract.SYMBOLS / f"{version}.json").read_text())["made_by"]
        assert made_by.startswith(("python -m tests.doubles.extract", "python -m tests.doubles.derive"))
