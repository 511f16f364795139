"""The state of the daemon, as `status` replies."""

from __future__ import annotations

from msgspec import Struct

from jetsel.wire.cameras import CameraStatus
from jetsel.wire.power import PowerStatus


class Percentiles(Struct, frozen=True):
    """What 50, 95 and 99 % of the recent ones stayed at or below, in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float


class StageTimes(Struct, frozen=True):
    """Where the time of the recent answers went; a stage that happened to none of them is null.

    They are the last 4,096 `answers`, none older than five minutes; the oldest came `since_s` ago.
    """

    answers: int
    since_s: float | None
    queue: Percentiles | None
    decode: Percentiles | None
    features: Percentiles | None
    choice: Percentiles | None
    inference: Percentiles | None
    total: Percentiles | None
    waiting: Percentiles | None
    input: Percentiles | None


class ClientStatus(Struct, frozen=True):
    """One client that has requests under way, by what its messages are known to come from."""

    name: str
    requests: int


class QueueStatus(Struct, frozen=True):
    """The requests that were admitted and not answered: begun or not, what they hold, and the limits of each.

    `clients` are those with the most of them.
    """

    waiting: int
    working: int
    workers: int
    bytes: int
    pixels: int
    most_requests: int
    most_bytes: int
    most_pixels: int
    clients: list[ClientStatus]


class HostStatus(Struct, frozen=True):
    """One engine host: `state` is idle, running, restarting or failed; `reason` says why it does not run.

    `last_end` says how the last one ended, `last_end_ago_s` when; null if none has.
    """

    backend: str
    state: str
    reason: str | None
    pid: int | None
    restarts: int
    last_end: str | None
    last_end_ago_s: float | None


class ReloadStatus(Struct, frozen=True):
    """The last reload: what it changed, or why it was refused."""

    ago_s: float
    took_s: float
    changed: list[str]
    refused: str | None


class CalibrationIdentity(Struct, frozen=True):
    """Which calibration is in use. `number` is this device's, null for one that came with the models.

    `sha256` is of the artefact: two devices if it is the same choose alike.
    """

    number: int | None
    created: str
    sha256: str


class ModelStatus(Struct, frozen=True):
    """One model as the daemon sees it: `state` is loading, ready, unloaded or unavailable, the latter with its reason.

    One that is unloaded is loaded by the next request that needs it. Times are those of StageTimes, for one photograph;
    `load_ms` is what the last load took. `escalations`: runs after which another model was asked.
    """

    name: str
    version: str
    state: str
    reason: str | None
    runs: int
    p50_ms: float | None
    p95_ms: float | None
    backend: str
    p99_ms: float | None = None
    escalations: int = 0
    load_ms: float | None = None

    @property
    def serves(self) -> bool:
        """Whether a request for it is answered."""
        return self.state in ("ready", "unloaded")


class ConfidenceShift(Struct, frozen=True):
    """A model's mean confidence over its last `answers` by the default policy; `seen` is null while they are few."""

    model: str
    answers: int
    seen: float | None
    calibrated: float
    is_significant: bool


class RefusalShift(Struct, frozen=True):
    """The share of the last `requests` with a promise that was in doubt; `seen` is null while they are few."""

    requests: int
    seen: float | None
    calibrated: float | None
    is_significant: bool


class DriftStatus(Struct, frozen=True):
    """How far photographs and confidences have moved from the calibration's.

    `indices` are population stability indices by feature, of the last `photographs` looked at; empty, and `highest`
    (the feature that moved most) and the median null, with why in `reason`. `look_ms` is what looking at one takes;
    `hint` says what to do, null for nothing.
    """

    photographs: int
    indices: dict[str, float]
    highest: str | None
    median_index: float | None
    reason: str | None
    confidences: list[ConfidenceShift]
    hint: str | None
    look_ms: float | None
    refusals: RefusalShift | None = None


class PromiseStatus(Struct, frozen=True):
    """A level that the default policy can promise: the share of images that it answers, the rest is in doubt."""

    wrong_at_most: float
    answered: float


class OperatingPoint(Struct, frozen=True):
    """What a policy gave on the calibration's photographs, held out: the share it was right on, and its mean time."""

    policy: str
    accuracy: float
    mean_ms: float


class FrontPoint(Struct, frozen=True):
    """A policy of the front: what it gave on the calibration's images, held out, and its `answers`.

    `energy_mj` is null if the calibration did not measure it.
    """

    policy: str
    accuracy: float
    mean_ms: float
    energy_mj: float | None
    answers: int


class FrontStatus(Struct, frozen=True):
    """The operating points of the default policy, the most accurate first.

    `last` answered the last request, null if none did yet. `floor` is the cheapest one that load and power budget lead
    to, in use for `cheapest_s` seconds; 0 if it is not in use, or the only one that they lead to.
    """

    points: list[FrontPoint]
    last: str | None
    floor: str
    cheapest_s: float


class FamilyStatus(Struct, frozen=True):
    """One family: its models cheapest first, the policies that a request may name, and what decides by default.

    `escalated` of its `answers` took more than one model. `not_offered` has the models that this machine does not run
    faster in 8 bits, and why. `wrong_at_most` is what requests that do not say it get, null for no promise; `promises`
    are those of the default policy. `front` is that of top1, null without a latency target or power budget.
    """

    name: str
    classes: int
    models: list[ModelStatus]
    policies: list[str]
    default_policy: dict[str, str]
    because: str
    fallback: str | None
    calibration: str | None
    not_offered: dict[str, str]
    promises: list[PromiseStatus]
    objective: str | None = None
    answers: int = 0
    escalated: int = 0
    calibration_identity: CalibrationIdentity | None = None
    drift: DriftStatus | None = None
    operating_points: list[OperatingPoint] | None = None
    wrong_at_most: float | None = None
    front: FrontStatus | None = None


class Histogram(Struct, frozen=True):
    """How many fell into each bin of `AnswerCounts.bounds_ms`, the last one above all bounds; and the sum."""

    counts: list[int]
    sum_ms: float


class AnswerCounts(Struct, frozen=True):
    """All answers since the start, by family and what answered; the stages of StageTimes, and each model's runs.

    `on_time` and `late` are of the answers that had a deadline. `by_label` counts what they said, by family; null if
    [observe] class_counts does not ask for it.
    """

    by_model: dict[str, dict[str, int]]
    by_policy: dict[str, dict[str, int]]
    in_doubt: int
    cut_short: int
    on_time: int
    late: int
    bounds_ms: list[float]
    stages: dict[str, Histogram]
    runs: dict[str, dict[str, Histogram]]
    by_label: dict[str, dict[str, int]] | None = None


class RecentAnswer(Struct, frozen=True):
    """One of the last answers, without its photograph."""

    id: str
    ago_s: float
    family: str
    label: str
    probability: float
    model: str
    policy: str
    ran: list[str]
    total_ms: float
    energy_mj: float | None
    in_doubt: bool


class EdgeModelStatus(Struct, frozen=True):
    """A model of the edge. reason: why it cannot be asked, null if it can; times are of the server's own work."""

    name: str
    remote: str
    reason: str | None
    mean_ms: float | None
    deviation_ms: float | None


class EdgeServerStatus(Struct, frozen=True):
    """One of the edges; the fields are as in EdgeStatus, of this one alone."""

    url: str
    reason: str | None
    network_ms: float | None
    network_deviation_ms: float | None
    runs: dict[str, int]


class EdgeStatus(Struct, frozen=True):
    """The edge: why it cannot be asked, null if it can, what the way there and back takes, and what was asked of it.

    `network_ms` is for a photograph of `usual_bytes`. `runs` counts by how they ended: answered, late (when it was not
    waited for any more), failed, cancelled. Of several edges, url, reason and times are those of the one in use, and
    counts and bytes the sums of all; `servers` has each, `handovers` how often another came into use.
    """

    url: str
    reason: str | None
    network_ms: float | None
    network_deviation_ms: float | None
    usual_bytes: int
    runs: dict[str, int]
    sent_bytes: int
    received_bytes: int
    models: list[EdgeModelStatus]
    servers: list[EdgeServerStatus] = []
    handovers: int = 0


class StatusReply(Struct, tag="status", tag_field="type", frozen=True):
    """The state of the daemon. `state` is loading, ready or stopping; `requests` counts by outcome or error code.

    `instance` names this run of the daemon: the counters begin with it.
    `progress` says how far the loading is, as in "loading 2 of 5"; null once it is done. `config` is the file that a
    reload reads; null for the built-in defaults.
    """

    v: int
    id: str
    state: str
    version: str
    pid: int
    instance: str
    uptime_s: float
    endpoints: list[str]
    default_family: str | None
    families: list[FamilyStatus]
    broken: list[str]
    requests: dict[str, int]
    queue: QueueStatus
    lost_replies: int
    resident_mb: float | None
    power: PowerStatus
    stages_ms: StageTimes
    answers: AnswerCounts
    max_image_mb: float
    progress: str | None = None
    hosts: list[HostStatus] = []
    reloads: dict[str, int] = {}
    last_reload: ReloadStatus | None = None
    config: str | None = None
    recent: list[RecentAnswer] = []
    edge: EdgeStatus | None = None
    cameras: list[CameraStatus] = []
