"""What a device tells of itself once in a period: counts and summaries, one JSON object a line; no photographs."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from jetsel.zoo.manifest import Name

USAGE = "usage"
"""The folder of a repository that devices write to."""


class Limits(Struct, frozen=True, kw_only=True):
    """What the device's owner allows: of its disk and memory for models, and the mean power; None: no limit is set."""

    storage_mb: float
    memory_mb: float | None = None
    budget_w: float | None = None


class CanaryResult(Struct, frozen=True, kw_only=True):
    """One replay of the canary's photographs. accuracy: None where no label is known; memory_mb: the daemon's."""

    photographs: int
    failed: int
    accuracy: float | None
    mean_ms: float | None
    memory_mb: float | None


class Trial(Struct, frozen=True, kw_only=True):
    """What became of the newest plan. before, after: by family.

    served_s: for how long one that was rolled back served; None where it is in use, or that is not known.
    """

    serial: int
    outcome: Literal["installed", "rolled-back", "refused", "waiting"]
    reason: str | None = None
    before: dict[str, CanaryResult] = {}
    after: dict[str, CanaryResult] = {}
    served_s: float | None = None


class ModelUsage(Struct, frozen=True, kw_only=True):
    """One model here. cost_ms, energy_mj: of a run by its calibration; memory_mb: of the model, loaded and run once."""

    name: str
    runs: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    cost_ms: float | None = None
    energy_mj: float | None = None
    memory_mb: float | None = None


class FamilyUsage(Struct, frozen=True, kw_only=True):
    """One family here. drift: the median population stability index, None where it is not known.

    classes: answers by label, None unless the owner lets them be counted.
    """

    name: str
    answers: int
    escalated: int
    by_model: dict[str, int]
    by_policy: dict[str, int]
    models: tuple[ModelUsage, ...]
    drift: float | None = None
    drift_reason: str | None = None
    classes: dict[str, int] | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """One period of one device; counts are those since its line before. at_s: seconds since 1970 by its own clock.

    sequence: rises by one with each line of a series, so that a missing one is seen; a series ends where the device
    forgets what it has sent. plan: the serial of what is installed, 0 for
    nothing. daemon: why it did not answer, None where it did. requests: by `ok` or error code. energy_j: above idle.
    dropped: lines lost so far, since they were too many before they could be sent.
    """

    format: Literal["jetsel-usage-1"] = "jetsel-usage-1"
    device: Name
    series: str
    sequence: int
    at_s: float
    plan: int
    limits: Limits
    trial: Trial | None = None
    daemon: str | None = None
    requests: dict[str, int] = {}
    late: int = 0
    families: tuple[FamilyUsage, ...] = ()
    p50_ms: float | None = None
    p95_ms: float | None = None
    energy_j: float | None = None
    watts: float | None = None
    power_mode: str | None = None
    battery_percent: float | None = None
    storage_used_mb: float = 0.0
    storage_free_mb: float | None = None
    memory_mb: float | None = None
    dropped: int = 0


def usage_path(first: Usage) -> str:
    """Return where a repository has the gzipped lines of a device that begin with this one."""
    return f"{USAGE}/{first.device}/{first.series}-{first.sequence:09d}.jsonl.gz"
