"""The answers in a status reply: counts, times of stages, and the last answers."""

from __future__ import annotations

from msgspec import Struct


class Histogram(Struct, frozen=True):
    """Counts of durations. `counts`: up to each of `AnswerCounts.bounds_ms`, and last those above all of them."""

    counts: list[int] = []
    sum_ms: float | None = None

    def since(self, before: Histogram | None) -> Histogram:
        """Return the durations counted after `before`, an earlier state of this histogram; None for all.

        If a count has fallen, counting began anew, as after a model's reload: then all are returned.
        """
        if before is None or any(now < then for now, then in zip(self.counts, before.counts, strict=False)):
            return self
        counts = [now - then for now, then in zip(self.counts, before.counts, strict=True)]
        if self.sum_ms is None or before.sum_ms is None:
            return Histogram(counts)
        return Histogram(counts, self.sum_ms - before.sum_ms)


class AnswerCounts(Struct, frozen=True):
    """Counts of all answers since the daemon's start; outer keys are families, inner keys models, policies or labels.

    `on_time` and `late` count answers to requests with a deadline. `stages` has the durations of each stage, `runs`
    those of model runs, by family and model. `by_label` is null unless [observe] class_counts is set.
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
        """Return the duration that a share (0 to 1) of `times` does not exceed, interpolated in its bin; None if empty.

        times: one of these histograms, or what its `since` returns. Above all bounds it is the last bound, as in
        Prometheus's histogram_quantile.
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
    """One of the last answers, without its image. `ran`: the models that ran. `ago_s`: its age. See Answer."""

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
