"""The table of a comparison on the terminal: energy has its columns where it is known."""

from __future__ import annotations

import io

import msgspec
from rich.console import Console

from jetsel.calibrate.judge.findings import Result
from jetsel.cli.terminal import results_table
from tests.unit.calibrate.report.sample import result


def printed(*results: Result) -> list[list[str]]:
    out = Console(file=io.StringIO(), width=200)
    out.print(results_table("top1", results))
    assert isinstance(out.file, io.StringIO)
    return [line.split() for line in out.file.getvalue().splitlines() if line.strip()]


def test_energy_stands_beside_time_and_what_one_policy_lacks_is_unknown() -> None:
    chain = result("chain", 0.6, 0.8, 3.87)  # whose energy is 5.1 times its milliseconds, and just the best single's
    lost = msgspec.structs.replace(
        result("cascade", 0.6, 0.8, 2.0),
        energy_mj=None,
        vs_best_single=msgspec.structs.replace(chain.vs_best_single, energy_ratio=None),
    )
    lines = printed(chain, lost)
    assert any("mJ" in line for line in lines)
    of = {line[0]: line for line in lines}
    assert of["chain"][of["chain"].index("19.7") + 1] == "1.00"
    assert of["cascade"].count("unknown") == 2
