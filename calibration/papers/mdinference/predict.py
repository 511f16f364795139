"""What deadlines and an edge server would give on recorded images: `python -m calibration.papers.mdinference.predict`.

The daemon's own code answers the recorded images on a virtual clock: the models of `[models] only` run on the device,
those of `[edge]` on the edge server.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibration.papers.mdinference.drawn import NAME as DRAWN
from calibration.papers.mdinference.networks import EXAMPLES
from calibration.papers.mdinference.predictions import predictions
from calibration.papers.tables import table
from jetsel.policies.deadline import NAME as TIMED
from jetsel.site.configured import limits_of
from jetsel.site.site import read_site

POLICIES = (TIMED, DRAWN)


def main() -> None:
    """Print a row for each network, deadline and policy."""
    parser = argparse.ArgumentParser(prog="python -m calibration.papers.mdinference.predict", description=__doc__)
    parser.add_argument("recording", type=Path, help="of all models, by `jetsel evaluate --recording`")
    parser.add_argument("--network", nargs="+", default=["university"], help=EXAMPLES)
    parser.add_argument("--sla-ms", nargs="+", type=float, default=[250.0], help="deadlines")
    parser.add_argument("--policy", nargs="+", choices=POLICIES, default=[POLICIES[0]])
    parser.add_argument("--around-ms", type=float, default=5.0, help="time of a request besides its models")
    parser.add_argument("--edge-factor", type=float, default=1.0, help="factor of the edge server's times")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--config", type=Path, help="jetsel.toml with [edge]")
    args = parser.parse_args()
    times = (args.around_ms, args.edge_factor, args.seed)
    rows = [
        f"{row['network']} | {row['deadline_ms']:g} | {row['policy']} | {row['models']} | "
        + " | ".join(f"{100 * row[key]:.2f}" for key in ("accuracy", "on_time", "effective", "from_edge"))
        + f" | {row['mean_ms']:.1f}"
        for row in predicted(args.recording, args.config, args.network, args.sla_ms, args.policy, *times)
    ]
    columns = "network | deadline, ms | policy | models | right, % | in time, % | both, % | edge server, % | mean ms"
    print(table("Predicted on the recording", columns, rows))


def predicted(
    recording: Path,
    config: Path | None,
    networks: Sequence[str],
    deadlines_ms: Sequence[float],
    policies: Sequence[str],
    around_ms: float = 5.0,
    edge_factor: float = 1.0,
    seed: int = 7,
) -> list[dict[str, Any]]:
    """Return the rows of `predictions` for the family and the edge server of a configuration."""
    calibrations = read_site(config).calibrations(None)
    models, served = calibrations.served()
    calibration, limits = calibrations.entry(None).usable_calibration(), limits_of(calibrations.config)
    device = (recording, models, list(served), calibration, calibrations.config, limits)
    return predictions(*device, networks, deadlines_ms, policies, around_ms, edge_factor, seed)


if __name__ == "__main__":
    main()
