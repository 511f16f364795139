"""What a run of the fuzzer came to, read from what libFuzzer and the worker say on stderr."""

from __future__ import annotations

import re
from dataclasses import dataclass

FINDING = "FINDING "  # begins the worker's line for each finding of a new kind
_STATE = re.compile(r"^#(?P<runs>\d+)\s+\w+\s+cov: (?P<edges>\d+) ft: \d+ corp: (?P<files>\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """Executions, edges of the measured modules that were reached, files that reached new code, and findings."""

    runs: int = 0
    edges: int = 0
    files: int = 0
    findings: tuple[str, ...] = ()

    def __add__(self, other: Outcome) -> Outcome:
        """What two runs, one after the other, came to together."""
        findings = tuple(dict.fromkeys(self.findings + other.findings))
        return Outcome(self.runs + other.runs, max(self.edges, other.edges), max(self.files, other.files), findings)

    def line(self, target: str) -> str:
        """The row of a table."""
        told = "".join(f"\n  {finding}" for finding in self.findings)
        return (
            f"{target}: {self.runs} executions, {self.edges} edges, corpus of {self.files}, "
            f"{len(self.findings)} findings{told}"
        )


def outcome_of(said: str, status: int) -> Outcome:
    """Read a worker's stderr; one that ended by itself (status 0) told all of its findings."""
    states = list(_STATE.finditer(said))
    last = {name: int(value) for name, value in states[-1].groupdict().items()} if states else {}
    findings = [line.removeprefix(FINDING) for line in said.splitlines() if line.startswith(FINDING)]
    if status != 0:
        end = [line for line in said.splitlines() if line.strip()][-3:]
        findings.append(f"the process ended with status {status}: {' | '.join(end)[-600:]}")
    return Outcome(**last, findings=tuple(findings))
