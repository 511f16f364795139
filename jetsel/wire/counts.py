"""The answers in a status reply: counts, times of stages, and the last answers."""

from __future__ import annotations

from msgspec import Struct


class Histogram(Struct, frozen=True):
    """Number of times in each bin of `AnswerCounts.bounds_ms`, the last one above all bounds; and their sum."""

    counts: list[int] = []
    sum_ms: float | None = None

    def since(self, before: Histogram | None) -> Histogram:
        """Return the counts added after `before`, an earlier state of this histogram; None: all counts.

        If a count has fallen, all counts are returned: counting started anew, as after a model's reload.
        """
        if before is None or any(now < then for now, then in zip(self.counts, before.counts, strict=False)):
            return self
        counts = [now - then for now, then in zip(self.counts, before.counts, strict=True)]
        if self.sum_ms is None or before.sum_ms is None:
            return Histogram(counts)
        return Histogram(counts, self.sum_ms - before.sum_ms)


class AnswerCounts(Struct, frozen=True):
    """All answers since the start, by family and model or policy, with times of stages and of model runs.

    `on_time` and `late` count answers with a deadline. `by_label` counts answers by family and label; null unless
    [observe] class_counts is set.
    """

    by_model: dict[str, dict[str, int]] = {}
    by_policy: dict[str, dict[str, int]] = {}
    in_doubt: int | None = None
    cut_short: int | None = None
    on_time: int | None = None
    late: int | None = None
    bounds_ms: list[float] = []
    stages: dict[str, Histogram] = {}
    runs: dict[str, dict[str, Histogram]] = {}
    by_label: dict[str, dict[str, int]] | None = None

    def percentile_ms(self, times: Histogram, share: float) -> float | None:
        """Return the time that this share of times does not exceed, interpolated inside its bin; None without times.

        times: one of these histograms, or a difference of two states. Above all bounds the last bound is returned, as
        Prometheus's histogram_quantile does.
        """
        left, lower_ms = share * sum(times.counts), 0.0
        if not left:
            return None
        for count, upper_ms in zip(times.counts, self.bounds_ms, strict=False):
            if left <= count:
                return lower_ms + (upper_ms - lower_ms) * left / count
            left, lower_ms = left - count, upper_ms
        return lower_ms


class RecentAnswer(Struct, frozen=True):
    """One of the last answers, without its image."""

    id: str = ""
    ago_s: float | None = None
    family: str = ""
    label: str = ""
    probability: float | None = None
    model: str = ""
    policy: str = ""
    ran: list[str] = []
    total_ms: float | None = None
    energy_mj: float | None = None
    in_doubt: bool | None = None
