"""The power part of a status reply: the board's power, and the energy of the answers."""

from __future__ import annotations

from msgspec import Struct


class DroppedRail(Struct, frozen=True):
    """A power rail (supply line with a sensor), or the total, that is not measured, and why."""

    name: str = ""
    reason: str = ""


class BudgetStatus(Struct, frozen=True):
    """The limit of mean power, `budget_w`, and its effect. None or "": unknown to the sender."""

    budget_w: float | None = None
    allowed_mj: float | None = None  # energy that one request may use; None while the budget limits nothing
    state: str = ""  # the effect in words, such as "limits nothing: no power has been measured yet"


class ModelEnergy(Struct, frozen=True):
    """Energy of one model's runs above idle power since the start: images (`photographs`) times calibrated energy."""

    family: str = ""
    model: str = ""
    photographs: int | None = None
    joules: float | None = None
    mean_mj: float | None = None


class PolicyEnergy(Struct, frozen=True):
    """Energy of one policy's answers above idle power since the start, by the calibration; choosing models counts."""

    family: str = ""
    policy: str = ""
    answers: int | None = None
    joules: float | None = None
    mean_mj: float | None = None


class EstimatesJudged(Struct, frozen=True):
    """Test of the answers' energy estimates: their sum `estimated_j` beside the measured energy, since the start.

    `measured_j` is above idle, null if unknown; `measured_half_j` is its uncertainty from idle power, half of a 95 %
    interval; `measured_s` is the time with known power. `unestimated` counts the `answers` without an estimate.
    `ratio` is measured over estimated, null if `measured_j` does not exceed its uncertainty.
    """

    measured_j: float | None = None
    measured_half_j: float | None = None
    measured_s: float | None = None
    estimated_j: float | None = None
    answers: int | None = None
    unestimated: int | None = None
    ratio: float | None = None


class PowerStatus(Struct, frozen=True):
    """The state of the board's power. `reason` says why nothing is measured, null if power is measured.

    `total_of` are the rails whose sum is `watts`, `mean_w` and `idle_w`. `out_of_conditions` says how the power mode or
    clocks differ from the calibration's. `judged` tests the estimates; `chooser_j` is the energy of choosing models.
    `rails_w` has each rail's last value by name; some rails may be parts of others.
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
