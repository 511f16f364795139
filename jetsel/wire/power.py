"""What `status` tells of the board's power, and of what the answers took of it."""

from __future__ import annotations

from msgspec import Struct


class DroppedRail(Struct, frozen=True):
    """A rail, or what should have been one, or the total, that is not read, and why."""

    name: str = ""
    reason: str = ""


class BudgetStatus(Struct, frozen=True):
    """The power budget and what it does now: `allowed_mj` is what one request may take, null if it is not limited."""

    budget_w: float | None = None
    allowed_mj: float | None = None
    state: str = ""


class ModelEnergy(Struct, frozen=True):
    """What one model took above idle power since the start, by the energy that was calibrated of one run."""

    family: str = ""
    model: str = ""
    photographs: int | None = None
    joules: float | None = None
    mean_mj: float | None = None


class PolicyEnergy(Struct, frozen=True):
    """What one policy's answers took above idle power since the start, by the calibration, choosing included."""

    family: str = ""
    policy: str = ""
    answers: int | None = None
    joules: float | None = None
    mean_mj: float | None = None


class EstimatesJudged(Struct, frozen=True):
    """What the sensor measured above idle power since the start, beside what the answers' estimates add up to.

    `measured_j` is null if it is not known; `measured_half_j` is what the error of idle power leaves unknown of it,
    half of a 95 % interval; `measured_s` is for how long power was known. `unestimated` of the `answers` have no
    estimate. `ratio` is measured over estimated, null if `measured_j` is no larger than its error.
    """

    measured_j: float | None = None
    measured_half_j: float | None = None
    measured_s: float | None = None
    estimated_j: float | None = None
    answers: int | None = None
    unestimated: int | None = None
    ratio: float | None = None


class PowerStatus(Struct, frozen=True):
    """What is known of the board's power. `reason` says why nothing is measured, null if it is.

    `rails_w` is what each rail said last, by its name: some may be parts of others.
    """

    reason: str | None = None
    total_of: list[str] = []
    watts: float | None = None
    mean_w: float | None = None
    idle_w: float | None = None
    idle_reason: str | None = None
    dropped: list[DroppedRail] = []
    power_mode: str | None = None
    out_of_conditions: list[str] = []
    budget: BudgetStatus | None = None
    judged: EstimatesJudged = EstimatesJudged()
    battery_percent: float | None = None
    models: list[ModelEnergy] = []
    policies: list[PolicyEnergy] = []
    chooser_j: float | None = None
    jetpack: str | None = None
    gpu_load: float | None = None
    temperatures_c: dict[str, float] | None = None
    rails_w: dict[str, float] | None = None
