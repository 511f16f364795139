"""pyproject.toml agrees with the pinned versions, the wheel is whole, and the agent's installation small."""

import re
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import msgspec
import pytest
from packaging.requirements import Requirement

import jetsel

ROOT = Path(__file__).parents[2]
PROJECT = msgspec.toml.decode((ROOT / "pyproject.toml").read_bytes())["project"]


def lower_bounds(*extras: str) -> dict[str, str]:
    """The oldest accepted version of each requirement of these extras; "" names the project's own dependencies."""
    lines = [
        line
        for extra in extras
        for line in (PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"])
    ]
    bounds = {}
    for requirement in map(Requirement, lines):
        (bounds[requirement.name],) = (
            bound.version for bound in requirement.specifier if bound.operator in {">=", "=="}
        )
    return bounds


def pins(name: str) -> dict[str, str]:
    """The versions pinned in constraints/`name` for Python 3.10."""
    text = re.sub(r"#.*", "", (ROOT / "constraints" / name).read_text())
    requirements = [Requirement(line) for line in text.splitlines() if line.strip()]
    old = {"python_version": "3.10", "python_full_version": "3.10.13"}
    return {
        r.name: str(r.specifier).removeprefix("==") for r in requirements if r.marker is None or r.marker.evaluate(old)
    }


def test_the_lowest_versions_tested_are_the_lower_bounds() -> None:
    assert pins("lowest.txt") == lower_bounds("", "demo", "dev", "gateway", "edge", "agent", "fleet")


def test_the_lower_bounds_of_what_only_tests_use_are_the_versions_they_run_with() -> None:
    tested = pins("tests.txt") | pins("export.txt")
    bounds = lower_bounds("export", "bench", "browser")
    assert bounds == {name: tested[name] for name in bounds}


def test_every_direct_requirement_is_pinned() -> None:
    direct = lower_bounds("", "demo", "dev", "gateway", "edge", "agent", "fleet", "bench", "browser", "calibrate")
    assert direct.keys() <= pins("tests.txt").keys()


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "constraints").glob("*.txt")))
def test_every_pin_is_one_exact_version(name: str) -> None:
    assert all(re.fullmatch(r"[0-9][0-9a-z.]*", version) for version in pins(name).values())


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("jetsel/")}
    files = (path for path in (ROOT / "jetsel").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    boards = {f"jetsel/power/boards_data/{path.name}" for path in (ROOT / "calibration" / "boards").iterdir()}
    assert boards
    systemd = [path.relative_to(ROOT / "systemd") for path in (ROOT / "systemd").rglob("*") if path.is_file()]
    units = {f"jetsel/systemd_units/{path.as_posix()}" for path in systemd if path.parts[0] != "deb"}
    assert {"jetsel/systemd_units/jetsel.service", "jetsel/systemd_units/user/jetsel.service"} < units
    assert packed == {path.relative_to(ROOT).as_posix() for path in files} | boards | units


MOST_MB = 10.0


def brought(extra: str) -> set[str]:
    """The distributions that `pip install jetsel[extra]` installs; "" for those of jetsel alone."""
    found: set[str] = set()
    waiting = [("jetsel", extra)]
    while waiting:
        name, wanted = waiting.pop()
        for line in distribution(name).requires or ():
            needed = Requirement(line)
            is_wanted = needed.marker is None or needed.marker.evaluate({"extra": wanted})
            if is_wanted and needed.name.lower() not in found:
                found.add(needed.name.lower())
                waiting += [(needed.name, extra) for extra in ("", *needed.extras)]
    return found


def size_bytes(name: str) -> int:
    files = [Path(str(path.locate())) for path in distribution(name).files or ()]
    return sum(path.stat().st_size for path in files if path.is_file())


def test_the_agent_brings_at_most_10_mb_and_nothing_of_the_managers() -> None:
    new = brought("agent") - brought("")
    assert "pynacl" in new
    assert new.isdisjoint({"duckdb", "scipy", "fsspec", "s3fs", "aiobotocore"})
    ours = sum(path.stat().st_size for path in (Path(jetsel.__file__).parent / "addons/fleet").rglob("*.py"))
    total_mb = (sum(map(size_bytes, new)) + ours) / 1e6
    assert total_mb < MOST_MB, f"{total_mb:.1f} MB: {', '.join(sorted(new))}"
