"""What a device reports of itself once in a period: totals and summaries, one JSON object a line; no images."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.zoo.manifest import Name

USAGE = "usage"
"""The folder of a repository that devices write to."""

Tally = Annotated[int, Meta(ge=0, le=2**53)]
Figure = Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Bounded where they are read, so that no device's numbers overflow where those of all are added."""


class DeviceLimits(Struct, frozen=True, kw_only=True):
    """What the device's owner allows; None: no limit is set.

    storage_mb: of its disk, for models. memory_mb: that the daemon may hold. budget_w: the mean power of all of it.
    deadline_ms: after which an answer is of no use.
    """

    storage_mb: Figure
    memory_mb: Figure | None = None
    budget_w: Figure | None = None
    deadline_ms: Figure | None = None


class CanaryResult(Struct, frozen=True, kw_only=True):
    """One replay of the canary's photographs. accuracy: None if no label is known; memory_mb: the daemon's."""

    photographs: Tally
    failed: Tally
    accuracy: Figure | None
    mean_ms: Figure | None
    memory_mb: Figure | None


class Trial(Struct, frozen=True, kw_only=True):
    """What became of the newest plan. before, after: by family.

    served_s: for how long one that was rolled back served; None if it is in use, or that is not known.
    """

    serial: Tally
    outcome: Literal["installed", "rolled-back", "refused", "waiting"]
    reason: str | None = None
    before: dict[str, CanaryResult] = {}
    after: dict[str, CanaryResult] = {}
    served_s: Figure | None = None


class ModelUsage(Struct, frozen=True, kw_only=True):
    """One model here. cost_ms, energy_mj: of a run by its calibration; memory_mb: of the model, loaded and run once.

    p95_ms: the 95th percentile of its runs since the line before, None without any.
    """

    name: str
    runs: Tally
    p95_ms: Figure | None = None
    cost_ms: Figure | None = None
    energy_mj: Figure | None = None
    memory_mb: Figure | None = None


class FamilyUsage(Struct, frozen=True, kw_only=True):
    """One family here. drift: the median population stability index, None if it is not known.

    classes: answers by label, None unless the owner lets them be counted.
    """

    name: str
    answers: Tally
    escalated: Tally
    by_model: dict[str, Tally]
    by_policy: dict[str, Tally]
    models: tuple[ModelUsage, ...]
    drift: Figure | None = None
    drift_reason: str | None = None
    classes: dict[str, Tally] | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """One device at one time. Counts and energy_j are totals since the daemon's start; the manager takes differences.

    at_s: seconds since 1970 by the device's clock. sequence: rises by one with each line of a series, so that a missing
    one is seen; a series ends if the device forgets what it has sent. plan: the serial of what is installed, 0 for
    nothing. daemon: why it did not answer, None if it did. instance: names this run of the daemon. canary: whether the
    agent sent requests since the line before, so that the difference to it is no usage. requests: by `ok` or error
    code. p95_ms: the 95th percentile of the latency since the line before. energy_j: above idle. dropped: lines lost so
    far, since they were too many before they could be sent.
    """

    format: Literal["jetsel-usage-1"] = "jetsel-usage-1"
    device: Name
    series: str
    sequence: Tally
    at_s: Figure
    plan: Tally
    limits: DeviceLimits
    trial: Trial | None = None
    daemon: str | None = None
    instance: str | None = None
    canary: bool = False
    requests: dict[str, Tally] = {}
    late: Tally = 0
    families: tuple[FamilyUsage, ...] = ()
    p95_ms: Figure | None = None
    energy_j: Figure | None = None
    watts: Figure | None = None
    power_mode: str | None = None
    battery_percent: Figure | None = None
    storage_used_mb: Figure = 0.0
    storage_free_mb: Figure | None = None
    memory_mb: Figure | None = None
    dropped: Tally = 0


def usage_path(first: Usage) -> str:
    """Return where a repository has the gzipped lines of a device that begin with this one."""
    return f"{USAGE}/{first.device}/{first.series}-{first.sequence:09d}.jsonl.gz"
