"""`/metrics`: the daemon's status for Prometheus. Counters are the daemon's own, and equal those of `jetsel status`."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response

from jetsel.base.errors import JetselError
from jetsel.client import AsyncClient
from jetsel.gateway import camera_states
from jetsel.gateway.camera_states import CameraState
from jetsel.wire import StatusReply
from jetsel.wire.counts import AnswerCounts
from jetsel.wire.power import PowerStatus
from jetsel.wire.status import EdgeStatus, FamilyStatus

Metric: TypeAlias = "CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily"
Labelled: TypeAlias = "Iterable[tuple[tuple[str, ...], Any]]"  # values of a metric's labels, and an item
ValueOf: TypeAlias = "Callable[[Any], float | None]"  # returns an item's number for the metric, None if unknown

_MODEL = ("family", "model")  # names of the labels of a model's metrics

STATUS_MS = 2000.0  # a scrape times out after 10 s by default


async def answer_scrape(client: AsyncClient, _: Request) -> Response:
    """Answer a request of Prometheus for /metrics."""
    try:
        status = await client.status(timeout_ms=STATUS_MS)
    except JetselError:
        status = None
    scraped_metrics = list(metrics(status, await asyncio.to_thread(camera_states.read)))
    return Response(generate_latest(_PreparedMetrics(scraped_metrics)), media_type=CONTENT_TYPE_LATEST)


@dataclass
class _PreparedMetrics(Collector):
    """Metrics of one scrape in the form that prometheus_client encodes."""

    metrics: list[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def metrics(status: StatusReply | None, cameras: Sequence[CameraState] = ()) -> Iterator[Metric]:
    """Yield every metric. status: None if the daemon does not reply, which jetsel_up reports as 0."""
    yield from _camera_metrics(cameras)
    yield GaugeMetricFamily("jetsel_up", "Whether the daemon answers.", value=status is not None)
    if status is None:
        return
    facts = {"version": status.version, "pid": str(status.pid or "")}
    yield InfoMetricFamily("jetsel_daemon", "Version and process.", facts)
    yield GaugeMetricFamily("jetsel_ready", "Whether every model is loaded.", value=status.state == "ready")
    yield GaugeMetricFamily("jetsel_uptime_seconds", "Seconds since the daemon started.", value=status.uptime_s)
    yield from _request_metrics(status)
    yield from _family_metrics(status.families)
    yield from _answer_metrics(status.answers)
    yield from _power_metrics(status.power)
    if status.edge is not None:
        yield from _edge_metrics(status.edge)


def _request_metrics(status: StatusReply) -> Iterator[Metric]:
    queue = status.queue
    outcomes = [((outcome,), count) for outcome, count in status.requests.items()]
    yield _counter("jetsel_requests", "Requests by `ok` or error code.", ("outcome",), outcomes)
    admitted = None if queue.waiting is None or queue.working is None else queue.waiting + queue.working
    yield GaugeMetricFamily("jetsel_queue_requests", "Requests admitted and not yet answered.", value=admitted)
    words = "Limit above which requests are refused as busy."
    yield GaugeMetricFamily("jetsel_queue_limit_requests", words, value=queue.most_requests)
    yield CounterMetricFamily("jetsel_lost_replies", "Replies that could not be delivered.", value=status.lost_replies)
    reloads = [((outcome,), count) for outcome, count in status.reloads.items()]
    yield _counter("jetsel_reloads", "Reloads by `ok` or error code.", ("outcome",), reloads)
    restarts = [((host.backend,), host.restarts) for host in status.hosts]
    yield _counter("jetsel_engine_host_restarts", "Restarts of the engine host.", ("backend",), restarts)
    if status.resident_mb is not None:
        yield GaugeMetricFamily("jetsel_resident_bytes", "The daemon's memory.", value=status.resident_mb * 1e6)


def _family_metrics(families: list[FamilyStatus]) -> Iterator[Metric]:
    models = [((family.name, model.name), model) for family in families for model in family.models if model.state]
    yield _counter("jetsel_model_runs", "Images that a model ran for.", _MODEL, models, lambda one: one.runs)
    words = "Runs after which another model ran."
    yield _counter("jetsel_model_escalations", words, _MODEL, models, lambda one: one.escalations)
    yield _gauge("jetsel_model_ready", "Whether a model can run.", _MODEL, models, lambda one: one.serves)
    yield _gauge("jetsel_model_loaded", "Whether a model is loaded.", _MODEL, models, lambda one: one.state == "ready")
    loads_s = [(key, one.load_ms / 1e3) for key, one in models if one.load_ms is not None]
    yield _gauge("jetsel_model_load_seconds", "Duration of the last load.", _MODEL, loads_s)
    info = InfoMetricFamily("jetsel_calibration", "The calibration in use.", labels=["family"])
    ages = []
    for family in families:
        if (identity := family.calibration_identity) is not None:
            number = "shipped" if identity.number is None else str(identity.number)
            facts = {"number": number, "created": identity.created, "sha256": identity.sha256[:12]}
            info.add_metric([family.name], facts)
            ages.append(((family.name,), _age_s(identity.created)))
    yield info
    yield _gauge("jetsel_calibration_age_seconds", "Age of the calibration.", ("family",), ages)
    yield from _operating_point_metrics(families)
    yield from _drift_metrics(families)


def _operating_point_metrics(families: list[FamilyStatus]) -> Iterator[Metric]:
    """Yield the use of each operating point: one policy with one setting, of several that trade accuracy for time."""
    fronts = [(family.name, family.front) for family in families if family.front is not None]
    answers = [((name, point.policy), point.answers) for name, front in fronts for point in front.points]
    words = "Answers by operating point of the default policy."
    yield _counter("jetsel_operating_point_answers", words, ("family", "point"), answers)
    at_cheapest = [((name,), front.cheapest_s) for name, front in fronts]
    words = "How long the cheapest operating point has been in use; 0 if it is not."
    yield _gauge("jetsel_cheapest_point_seconds", words, ("family",), at_cheapest)


def _age_s(created: str) -> float | None:
    """Return the seconds since midnight UTC of an ISO 8601 date, None if it is none."""
    try:
        day = datetime.datetime.fromisoformat(created).replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    return (datetime.datetime.now(datetime.timezone.utc) - day).total_seconds()


def _drift_metrics(families: list[FamilyStatus]) -> Iterator[Metric]:
    """Yield how much recent images and answers differ from those of the calibration."""
    drifts = [(family.name, family.drift) for family in families if family.drift is not None]
    indices = [((name, feature), index) for name, drift in drifts for feature, index in drift.indices.items()]
    yield _gauge("jetsel_drift_index", "Population stability index of a feature.", ("family", "feature"), indices)
    confidences = [((name, one.model), one) for name, drift in drifts for one in drift.confidences]
    words = "Mean confidence of the last runs by the default policy."
    yield _gauge("jetsel_confidence_mean", words, _MODEL, confidences, lambda one: one.seen)
    words = "Mean confidence on the calibration's images."
    yield _gauge("jetsel_confidence_calibrated", words, _MODEL, confidences, lambda one: one.calibrated)
    words = "Whether the confidence differs much from the calibration's."
    yield _gauge("jetsel_confidence_shifted", words, _MODEL, confidences, lambda one: one.is_significant)
    refusals = [((name,), drift.refusals) for name, drift in drifts if drift.refusals is not None]
    words = "In-doubt share of the last requests with a promise."
    yield _gauge("jetsel_in_doubt_share", words, ("family",), refusals, lambda one: one.seen)
    words = "Expected in-doubt share of requests with a promise."
    yield _gauge("jetsel_in_doubt_calibrated", words, ("family",), refusals, lambda one: one.calibrated)
    hints = [((name,), drift.hint is not None) for name, drift in drifts]
    yield _gauge("jetsel_recalibration_hint", "Whether status recommends a new calibration.", ("family",), hints)


def _answer_metrics(answers: AnswerCounts) -> Iterator[Metric]:
    yield _counter("jetsel_answers", "Answers by model.", _MODEL, _flatten(answers.by_model))
    yield _counter("jetsel_policy_answers", "Answers by policy.", ("family", "policy"), _flatten(answers.by_policy))
    yield CounterMetricFamily("jetsel_answers_in_doubt", "Answers marked as in doubt.", value=answers.in_doubt)
    words = "Answers that ended early because of a deadline."
    yield CounterMetricFamily("jetsel_answers_cut_short", words, value=answers.cut_short)
    counts = [(("on_time",), answers.on_time), (("late",), answers.late)]
    yield _counter("jetsel_deadlines", "Answers that had a deadline.", ("outcome",), counts)
    stages = [((stage,), histogram) for stage, histogram in answers.stages.items()]
    words = "Duration of each stage of an answer."
    yield _histogram("jetsel_stage_seconds", words, ("stage",), stages, answers.bounds_ms)
    runs = [((family, model), one) for family, models in answers.runs.items() for model, one in models.items()]
    yield _histogram("jetsel_run_seconds", "Runs of models.", _MODEL, runs, answers.bounds_ms)


def _camera_metrics(cameras: Sequence[CameraState]) -> Iterator[Metric]:
    if not cameras:
        return
    by_camera = [((camera.name, camera.region or ""), camera) for camera in cameras]
    labels, words = ("camera", "region"), "Whether frames come from each camera."
    yield _gauge("jetsel_camera_up", words, labels, by_camera, lambda camera: camera.connected)
    words = "Changes of the label."
    yield _counter("jetsel_camera_label_changes", words, labels, by_camera, lambda camera: camera.label_changes)
    counts = (
        (name, {"read": camera.frames_read, "skipped": camera.frames_skipped, "classified": camera.frames_asked})
        for name, camera in by_camera
    )
    frames = [((*name, what), number) for name, camera_counts in counts for what, number in camera_counts.items()]
    yield _counter("jetsel_camera_frames", "Frames of each camera.", ("camera", "region", "what"), frames)


def _edge_metrics(edge: EdgeStatus) -> Iterator[Metric]:
    yield GaugeMetricFamily("jetsel_edge_up", "Whether the edge server is available.", value=edge.reason is None)
    servers = [((server.url,), server) for server in edge.servers]
    words = "Whether each edge server is available."
    yield _gauge("jetsel_edge_server_up", words, ("url",), servers, lambda one: one.reason is None)
    yield _gauge("jetsel_edge_in_use", "Edge server in use.", ("url",), servers, lambda one: one.url == edge.url)
    yield CounterMetricFamily("jetsel_edge_handovers", "Changes of the edge server in use.", value=edge.handovers)
    runs = [((outcome,), count) for outcome, count in edge.runs.items()]
    yield _counter("jetsel_edge_runs", "Images sent to the edge server, by outcome.", ("outcome",), runs)


def _power_metrics(power: PowerStatus) -> Iterator[Metric]:
    rails = [(("total",), power.watts), (("mean",), power.mean_w), (("idle",), power.idle_w)]
    yield _gauge("jetsel_power_watts", "Power of the board: now, over ten seconds, idle.", ("kind",), rails)
    rails_w = [((name,), watts) for name, watts in (power.rails_w or {}).items()]
    yield _gauge("jetsel_rail_watts", "Power of each rail; some may be parts of others.", ("rail",), rails_w)
    joules = [((one.family, one.model), one.joules) for one in power.models]
    yield _counter("jetsel_model_joules", "Estimated energy of a model's runs.", _MODEL, joules)
    estimates = power.judged  # compared with the measured energy
    if estimates is not None:
        yield _counter("jetsel_estimated_joules", "Sum of the estimated energies.", (), [((), estimates.estimated_j)])
        yield _gauge("jetsel_energy_ratio", "Ratio of measured to estimated energy.", (), [((), estimates.ratio)])
    conditions = len(power.out_of_conditions)
    yield GaugeMetricFamily("jetsel_out_of_conditions", "How the board differs from calibration.", value=conditions)
    zones = [((zone,), celsius) for zone, celsius in (power.temperatures_c or {}).items()]
    yield _gauge("jetsel_temperature_celsius", "Thermal zones of the board.", ("zone",), zones)


def _identity(item: float | None) -> float | None:
    return item


def _flatten(counts: Mapping[str, Mapping[str, int]]) -> Labelled:
    """Return counts by family and name with both as labels."""
    return [((family, name), count) for family, by_name in counts.items() for name, count in by_name.items()]


def _counter(name: str, words: str, labels: tuple[str, ...], items: Labelled, value_of: ValueOf = _identity) -> Metric:
    return _add_values(CounterMetricFamily(name, words, labels=labels), items, value_of)


def _gauge(name: str, words: str, labels: tuple[str, ...], items: Labelled, value_of: ValueOf = _identity) -> Metric:
    return _add_values(GaugeMetricFamily(name, words, labels=labels), items, value_of)


def _add_values(metric: CounterMetricFamily | GaugeMetricFamily, items: Labelled, value_of: ValueOf) -> Metric:
    """Add a value for each item whose value is known, and return the metric."""
    for labels, item in items:
        if (value := value_of(item)) is not None:
            metric.add_metric(labels, value)
    return metric


def _histogram(name: str, words: str, labels: tuple[str, ...], items: Labelled, bounds_ms: list[float]) -> Metric:
    """Return histograms in seconds. items: Histograms of wire.counts. bounds_ms: the buckets' upper bounds."""
    metric = HistogramMetricFamily(name, words, labels=labels)
    ends = [*(str(bound / 1e3) for bound in bounds_ms), "+Inf"]
    for key, histogram in items:
        if histogram.sum_ms is None or len(histogram.counts) != len(ends):
            continue  # from a daemon of another version
        buckets = list(zip(ends, accumulate(histogram.counts), strict=True))
        metric.add_metric(key, buckets, histogram.sum_ms / 1e3)
    return metric
