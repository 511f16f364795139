"""What a device's installation grows by for the agent: at most 10 MB, without the manager's libraries."""

from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement

import jetsel

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
