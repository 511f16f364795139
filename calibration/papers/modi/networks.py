"""The networks of MODI's Figure 4, by figures that others published: round trip, way up, and variation where known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration.papers.mdinference.networks import NAMED, LogNormal

DRAWS = 200  # for each photograph
MEAN_BYTES = 51_900  # of the photographs behind MDInference's Table IV (its section V-D)


@dataclass(frozen=True)
class Network:
    """The round trip and the way up; sigma: deviation of the logarithm of T_nw, None where nobody published one."""

    round_trip_ms: float
    up_megabits_per_s: float
    sigma: float | None = None

    def transfer_ms(self, sent_bytes: int) -> float:
        """Return T_nw in the median: latency + bytes / bandwidth, as jetsel.edge.server has it. The answer is small."""
        return self.round_trip_ms + sent_bytes / (self.up_megabits_per_s * 125)

    def ends_ms(self, sizes: Sequence[int], chance: np.random.Generator) -> NDArray[np.float64] | None:
        """Return between which times 90 % of the photographs of these sizes are sent, None where no sigma is known."""
        if self.sigma is None:
            return None
        median_ms = np.array([self.transfer_ms(size) for size in sizes]).repeat(DRAWS)
        return np.quantile(median_ms * LogNormal(1.0, self.sigma).draw(len(median_ms), chance), (0.05, 0.95))


def as_mdinference(name: str, round_trip_ms: float) -> Network:
    """Return the network whose T_nw for MEAN_BYTES is, in the median, what was fitted to MDInference's Table IV."""
    fitted = NAMED[name]
    return Network(round_trip_ms, MEAN_BYTES / (fitted.median_ms - round_trip_ms) / 125, fitted.sigma)


_SHAPED = "catchpoint/WebPageTest, www/settings/connectivity.ini.sample"
PROFILES: dict[str, tuple[Network, str]] = {
    "wired, fibre": (Network(4, 5), f"FIOS in {_SHAPED}"),
    "university Wi-Fi": (as_mdinference("university", 21), "21 ms: MODI, footnote 1; the rest: MDInference, Table IV"),
    "residential Wi-Fi": (as_mdinference("residential", 28), f"28 ms: Cable in {_SHAPED}; MDInference, Table IV"),
    "public Wi-Fi": (
        Network(50, 8.77),
        f"OpenSignal, 2014: free hotspots of the US, their way down; 50 ms, a guess: DSL in {_SHAPED}",
    ),
    "LTE": (Network(70, 6), "70 ms: LTE of webpagetest.org; 6 Mbit/s: Huang et al., MobiSys 2012, abstract"),
    "poor cellular": (Network(150, 0.75), "GoogleChrome/lighthouse, docs/throttling.md: the lowest quarter of 4G"),
}
"""Each with its source."""
