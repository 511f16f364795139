"""Where integration gets its samples: what a sampler offers to the meter, the ledger and the idle measurement."""

from __future__ import annotations

from typing import Protocol

from jetsel.power.samples import Samples


class Source(Protocol):
    """Samples of the board's total power, kept for a while. Any thread may use it."""

    @property
    def total_of(self) -> tuple[str, ...]:
        """Return the names of the rails that make the total."""

    @property
    def reason(self) -> str | None:
        """Return why no samples come, None while they do."""

    def open(self) -> None:
        """Ask for samples at the fast rate until as many shut()."""

    def shut(self) -> None:
        """Take one open() back."""

    def wait(self, until_ns: int, limit_s: float) -> bool:
        """Wait until a sample of that time or later is there; False at the limit."""

    def samples(self, begin_ns: int, end_ns: int) -> Samples:
        """Return the samples of an interval (time.monotonic_ns()), and one more on each side where there is one."""

    def latest(self) -> tuple[int, float] | None:
        """Return the newest sample's time and watts, None before the first."""


AROUND_NS = 20_000_000
"""What is read beside a window, at least: what the power did there bears on the window's uncertainty."""


def around(source: Source, begin_ns: int, end_ns: int) -> Samples:
    """Return the samples of a window and of what lies beside it, as far as a value of the sensor may reach."""
    samples = source.samples(begin_ns - AROUND_NS, end_ns + AROUND_NS)
    reach_ns = round(1.5e9 * samples.age_s)
    if reach_ns <= AROUND_NS:
        return samples
    return source.samples(begin_ns - reach_ns, end_ns + reach_ns)
