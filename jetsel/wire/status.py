"""The status reply: the state of the daemon.

A client needs `v`, `id` and `state` only. Fields that a daemon of another version does not send are unknown: None or
empty.
"""

from __future__ import annotations

from msgspec import Struct

from jetsel.wire.counts import AnswerCounts, RecentAnswer
from jetsel.wire.power import PowerStatus


class QueueStatus(Struct, frozen=True):
    """Accepted requests without a reply: how many wait or are in work, the bytes and pixels they hold, and limits."""

    waiting: int | None = None
    working: int | None = None
    workers: int | None = None
    bytes: int | None = None
    pixels: int | None = None
    most_requests: int | None = None
    most_bytes: int | None = None


class HostStatus(Struct, frozen=True):
    """A process that runs models (engine host). `state`: idle, running, restarting or failed, for `reason`.

    `last_end` says how the previous process ended, `last_end_ago_s` how long ago; null if none has ended.
    """

    backend: str = ""
    state: str = ""
    reason: str | None = None
    pid: int | None = None
    restarts: int | None = None
    last_end: str | None = None
    last_end_ago_s: float | None = None


class ReloadStatus(Struct, frozen=True):
    """The last reload. `changed`: the differences, for people. `refused`: why it was rejected, or null."""

    ago_s: float | None = None
    took_s: float | None = None
    changed: list[str] = []
    refused: str | None = None


class CalibrationIdentity(Struct, frozen=True):
    """The calibration in use. `number`: its version on this device, null if it was shipped with the models.

    `sha256` is the calibration's hash: devices with the same value choose models in the same way.
    """

    number: int | None = None
    created: str = ""
    sha256: str = ""


class ModelStatus(Struct, frozen=True):
    """One model. `state`: loading, ready, unloaded (the next request loads it), or unavailable for `reason`.

    `load_ms` is the time of the last load. `escalations` counts the runs after which another model ran for the request.
    """

    name: str = ""
    version: str = ""
    state: str = ""
    reason: str | None = None
    runs: int | None = None
    backend: str = ""
    escalations: int | None = None
    load_ms: float | None = None

    @property
    def serves(self) -> bool:
        """True if the daemon answers requests for the model."""
        return self.state in ("ready", "unloaded")


class ConfidenceShift(Struct, frozen=True):
    """A model's mean confidence in its last `answers` by the default policy (`seen`), and in the calibration.

    `seen` is null for few answers. `is_significant`: they differ by more than 0.05 and more than chance explains.
    """

    model: str = ""
    answers: int | None = None
    seen: float | None = None
    calibrated: float | None = None
    is_significant: bool | None = None


class RefusalShift(Struct, frozen=True):
    """The share of answers in doubt among the last `requests` that had a guaranteed error rate (`wrong_at_most`).

    `seen` is that share, null for few requests; `calibrated` is the share that the calibration predicts for them.
    """

    requests: int | None = None
    seen: float | None = None
    calibrated: float | None = None
    is_significant: bool | None = None


class DriftStatus(Struct, frozen=True):
    """How far the last images and the models' confidences differ from those of the calibration (drift).

    `indices` are population stability indices by feature over the last `photographs` (images) checked; `highest` is the
    feature that moved most. If unknown, they are empty or null, and `reason` says why. `hint`: what to do, or null.
    """

    photographs: int | None = None
    indices: dict[str, float] = {}
    highest: str | None = None
    median_index: float | None = None
    reason: str | None = None
    confidences: list[ConfidenceShift] = []
    hint: str | None = None
    refusals: RefusalShift | None = None


class PromiseStatus(Struct, frozen=True):
    """An error rate that the calibration guarantees for answers not in doubt, and the share of images that get one."""

    wrong_at_most: float | None = None
    answered: float | None = None


class OperatingPoint(Struct, frozen=True):
    """A policy's accuracy and mean latency on the calibration's held-out images."""

    policy: str = ""
    accuracy: float | None = None
    mean_ms: float | None = None


class FrontPoint(Struct, frozen=True):
    """A policy that load or power budget may select: figures on the calibration's held-out images, and `answers`."""

    policy: str = ""
    accuracy: float | None = None
    mean_ms: float | None = None
    energy_mj: float | None = None
    answers: int | None = None


class FrontStatus(Struct, frozen=True):
    """The policies from which load and power budget select one for each request (the front), most accurate first.

    `last` is the one of the last request, null before the first. `floor` is the cheapest that may be selected.
    `cheapest_s` is how long it has been in use, in seconds: 0 if it is not or if it is the only one, null if unknown.
    """

    points: list[FrontPoint] = []
    last: str | None = None
    floor: str = ""
    cheapest_s: float | None = None


class FamilyStatus(Struct, frozen=True):
    """One family: its models cheapest first, the policies that requests may name, and the default policy.

    `because` says why it is the default. `escalated` counts the `answers` that took several models. `wrong_at_most` is
    the guaranteed error rate of requests that give none, null for no guarantee; `promises` are those of the default
    policy. `front` is null without a latency target or power budget. `not_calibrated` names the models that are not in
    the calibration, in use or set aside: no policy uses them.
    """

    name: str = ""
    classes: int | None = None
    models: list[ModelStatus] = []
    policies: list[str] = []
    default_policy: str = ""
    because: str = ""
    fallback: str | None = None
    calibration: str | None = None
    promises: list[PromiseStatus] = []
    objective: str | None = None
    answers: int | None = None
    escalated: int | None = None
    calibration_identity: CalibrationIdentity | None = None
    drift: DriftStatus | None = None
    operating_points: list[OperatingPoint] | None = None
    wrong_at_most: float | None = None
    front: FrontStatus | None = None
    not_calibrated: list[str] = []


class EdgeModelStatus(Struct, frozen=True):
    """A model of the edge server. `remote`: its name there. `reason`: why it is unavailable. `mean_ms`: of an image."""

    name: str = ""
    remote: str = ""
    reason: str | None = None
    mean_ms: float | None = None


class EdgeServerStatus(Struct, frozen=True):
    """One of several edge servers; the fields are those of EdgeStatus, for this server alone."""

    url: str = ""
    reason: str | None = None
    network_ms: float | None = None
    runs: dict[str, int] = {}


class EdgeStatus(Struct, frozen=True):
    """The edge servers. `reason`: why none is available. `network_ms`: mean round trip of `usual_bytes`.

    `runs` counts by result: answered, late (no longer needed), failed, cancelled. If there are several servers, url,
    reason and times are those of the one in use, counts and bytes are sums; `servers` has each, `handovers` counts
    changes of the one in use.
    """

    url: str = ""
    reason: str | None = None
    network_ms: float | None = None
    usual_bytes: int | None = None
    runs: dict[str, int] = {}
    sent_bytes: int | None = None
    received_bytes: int | None = None
    models: list[EdgeModelStatus] = []
    servers: list[EdgeServerStatus] = []
    handovers: int | None = None


class StatusReply(Struct, tag="status", tag_field="type", frozen=True):
    """The state of the daemon. `state`: loading, ready or stopping. `requests`: counts by outcome or error code.

    `instance` identifies this run of the daemon, from whose start counters count. `broken`: files of models that cannot
    be used. `progress`: state of loading, such as "loading 2 of 5", or null. `config`: the file that a reload reads.
    """

    v: int
    id: str
    state: str
    version: str = ""
    pid: int | None = None
    instance: str = ""
    uptime_s: float | None = None
    endpoints: list[str] = []
    default_family: str | None = None
    families: list[FamilyStatus] = []
    broken: list[str] = []
    requests: dict[str, int] = {}
    queue: QueueStatus = QueueStatus()
    lost_replies: int | None = None
    resident_mb: float | None = None
    power: PowerStatus = PowerStatus()
    answers: AnswerCounts = AnswerCounts()
    max_image_mb: float | None = None
    progress: str | None = None
    hosts: list[HostStatus] = []
    reloads: dict[str, int] = {}
    last_reload: ReloadStatus | None = None
    config: str | None = None
    recent: list[RecentAnswer] = []
    edge: EdgeStatus | None = None
