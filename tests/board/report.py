"""What the board's owner may send us: which machine it was, and a table of figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.report import table
from jetsel.calibrate.record.conditions import gather

UNKNOWN = "unknown"


def percentiles(times_ms: Sequence[float]) -> str:
    """Return the median and the 95th percentile in words."""
    p50, p95 = np.percentile(times_ms, [50, 95])
    return f"{p50:.2f} / {p95:.2f}"


def megabytes(size_bytes: int | None) -> str:
    """Return a size in MB; unknown for None."""
    return UNKNOWN if size_bytes is None else f"{size_bytes / 1e6:.1f}"


class Report:
    """Facts about the machine, and a row for each engine: figures in words by their names, the same for all."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.rows: list[dict[str, str]] = []

    def machine(self, about: Mapping[str, Any]) -> None:
        """Note the machine's conditions, and what the host says of itself."""
        self.facts |= gather().described()
        self.facts |= {"host's python": about["python"], "TensorRT": about["version"]}
        self.facts |= {f"host's {name}": version for name, version in sorted(about["libraries"].items())}
        self.facts |= {f"gpu {name}": str(value) for name, value in about["gpu"].items()}

    def lines(self) -> list[str]:
        """Return all of it as text, the rows as a table in Markdown."""
        lines = [f"- {name}: {value}" for name, value in self.facts.items()]
        if self.rows:
            lines += table(list(self.rows[0]), [list(row.values()) for row in self.rows])
        return lines
