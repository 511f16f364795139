"""What a device reports about itself once in a period: totals and summaries, one JSON object a line; no images."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from jetsel.zoo.manifest import Name

USAGE = "usage"  # folder of a repository to which devices write

Tally = Annotated[int, Meta(ge=0, le=2**53)]
Figure = Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Limited when read, so that no device's numbers overflow the sums over all devices."""


class DeviceLimits(Struct, frozen=True, kw_only=True):
    """Limits set by the device's owner; None: no limit.

    storage_mb: of its disk, for models. memory_mb: that the daemon may hold. budget_w: mean power of the whole board.
    deadline_ms: after which an answer is useless.
    """

    storage_mb: Figure
    memory_mb: Figure | None = None
    budget_w: Figure | None = None
    deadline_ms: Figure | None = None


class CanaryResult(Struct, frozen=True, kw_only=True):
    """One run over the canary images. accuracy: None without labels. memory_mb: of the daemon."""

    photographs: Tally
    failed: Tally
    accuracy: Figure | None
    mean_ms: Figure | None
    memory_mb: Figure | None


class Trial(Struct, frozen=True, kw_only=True):
    """Result of the newest plan. before, after: by family.

    served_s: how long a plan that was rolled back served; None if it is in use, or unknown.
    """

    serial: Tally
    outcome: Literal["installed", "rolled-back", "refused", "waiting"]
    reason: str | None = None
    before: dict[str, CanaryResult] = {}
    after: dict[str, CanaryResult] = {}
    served_s: Figure | None = None


class ModelUsage(Struct, frozen=True, kw_only=True):
    """One model on the device. cost_ms, energy_mj: of a run, calibrated. memory_mb: after load and one run.

    p95_ms: 95th percentile of its runs since the previous line, None without runs.
    """

    name: str
    runs: Tally
    p95_ms: Figure | None = None
    cost_ms: Figure | None = None
    energy_mj: Figure | None = None
    memory_mb: Figure | None = None


class FamilyUsage(Struct, frozen=True, kw_only=True):
    """One family on the device. drift: median population stability index, None if unknown.

    classes: answers by label, None unless the owner allows these counts.
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


class DaemonUsage(Struct, frozen=True, kw_only=True):
    """The daemon of a device. Counts and energy_j are totals since its start; the manager takes differences.

    instance: identifies this run of the daemon, None if it did not answer. requests: by `ok` or error code. p95_ms:
    95th percentile of the latency since the previous line. energy_j: above idle.
    """

    instance: str | None = None
    requests: dict[str, Tally] = {}
    late: Tally = 0
    families: tuple[FamilyUsage, ...] = ()
    p95_ms: Figure | None = None
    energy_j: Figure | None = None
    watts: Figure | None = None
    power_mode: str | None = None
    battery_percent: Figure | None = None
    memory_mb: Figure | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """One device at one time.

    at_s: seconds since 1970 by the device's clock. series, sequence: the sequence rises by one with each line of a
    series, so that missing lines show; a new series begins if the device forgets what it has sent. plan: installed
    serial, 0 for none. silence: why the daemon did not answer, None if it did. canary: whether the agent sent requests
    since the previous line, so that the difference is not usage. dropped: lines that were lost so far because too many
    waited.
    """

    format: Literal["jetsel-usage-1"] = "jetsel-usage-1"
    device: Name
    series: str
    sequence: Tally
    at_s: Figure
    plan: Tally
    limits: DeviceLimits
    trial: Trial | None = None
    daemon: DaemonUsage = DaemonUsage()
    silence: str | None = None
    canary: bool = False
    storage_used_mb: Figure = 0.0
    storage_free_mb: Figure | None = None
    dropped: Tally = 0


def usage_path(first: Usage) -> str:
    """Return the path of an upload in the repository: the gzipped lines of a device from this one on."""
    return f"{USAGE}/{first.device}/{first.series}-{first.sequence:09d}.jsonl.gz"
