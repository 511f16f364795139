"""What `status` tells of the board's power, and of what the answers took of it."""

from __future__ import annotations

from msgspec import Struct


class DroppedRail(Struct, frozen=True):
    """A rail that is not read, and why."""

    name: str
    reason: str


class Sampling(Struct, frozen=True):
    """How the power is read: how fast and how evenly while a request is under way, and what that takes now.

    `at_rest_hz` is how fast it is read now, null while a request is under way. `restarts` counts those of the process
    that reads.
    """

    achieved_hz: float | None
    jitter_p50_us: float | None
    jitter_p99_us: float | None
    update_period_ms: float | None
    core_share: float | None
    at_rest_hz: float | None = None
    restarts: int | None = None


class BudgetStatus(Struct, frozen=True):
    """The power budget and what it does now: `level` most expensive models are left out of what policies choose."""

    budget_w: float
    level: int
    state: str


class ModelEnergy(Struct, frozen=True):
    """What one model took above idle power since the start: its shares of what ran beside it."""

    family: str
    model: str
    photographs: int
    joules: float | None
    mean_mj: float | None
    mean_w: float | None


class PolicyEnergy(Struct, frozen=True):
    """What one policy's answers took above idle power since the start, and beside the best single model.

    `saved_j` is what always using the best single model would have taken more.
    """

    family: str
    policy: str
    answers: int
    joules: float | None
    mean_mj: float | None
    mean_w: float | None
    saved_j: float | None
    saved_reason: str | None


class PowerStatus(Struct, frozen=True):
    """What is known of the board's power. `reason` says why nothing is measured, null where it is."""

    reason: str | None
    total_of: list[str]
    watts: float | None
    mean_w: float | None
    idle_w: float | None
    idle_reason: str | None
    sampling: Sampling | None
    dropped: list[DroppedRail]
    power_mode: str | None
    out_of_conditions: list[str]
    budget: BudgetStatus | None
    models: list[ModelEnergy]
    policies: list[PolicyEnergy]
    chooser_j: float | None
    chooser_share: float | None
    decode_j: float | None
    jetpack: str | None = None
    gpu_load: float | None = None
    temperatures_c: dict[str, float] | None = None
