"""/metrics equals status to the unit, under failures too; and a promised share of wrong answers over HTTP."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

import jetsel
from jetsel.artefact.calibration import ExpectedStatistics
from tests.system.daemons import Connect, Start, drawn, encoded, serving
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import JPEG, Gateway, opened
from tests.system.promises import ANSWERED, MISSING, REFUSED, family_with_promises

PICTURES = [encoded(drawn(seed)) for seed in range(10)]


def samples(gateway: Gateway) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    status, text, told = gateway.ask("GET", "/metrics")
    assert (status, told["content-type"].startswith("text/plain; version=")) == (200, True)
    families = text_string_to_metric_families(text.decode())
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


@pytest.mark.slow
def test_counters_equal_status_after_a_thousand_requests_some_of_which_fail(
    start: Start, connect: Connect, open_gateway: Open
) -> None:
    daemon = start("[observe]\ndrift_every = 1\nclass_counts = true\n")
    gateway, peer = open_gateway(daemon.endpoint), connect(daemon)
    for number in range(1000):
        kinds: list[dict[str, Any]] = [{}, {"model": "xs"}, {"policy": "chain"}, {"deadline_ms": 60_000}]
        peer.send({"type": "classify", **kinds[number % 4]}, b"bad" if number % 50 == 7 else PICTURES[number % 10])
        if number % 20 == 19:
            for _ in range(20):
                peer.receive()
    assert peer.ask({"type": "reload"})["type"] == "reloaded"
    with jetsel.Client(daemon.endpoint) as client:
        status = client.status()
    found = samples(gateway)

    def value(name: str, **labels: str) -> float:
        return found[name, frozenset(labels.items())]

    assert status.requests == {"ok": 980, "bad-image": 20}
    for outcome, count in status.requests.items():
        assert value("jetsel_requests_total", outcome=outcome) == count
    for model, count in status.answers.by_model["starter"].items():
        assert value("jetsel_answers_total", family="starter", model=model) == count
    for policy, count in status.answers.by_policy["starter"].items():
        assert value("jetsel_policy_answers_total", family="starter", policy=policy) == count
    assert sum(status.answers.by_label["starter"].values()) == 980
    (family,) = status.families
    for model in family.models:
        assert value("jetsel_model_runs_total", family="starter", model=model.name) == model.runs
        assert value("jetsel_model_escalations_total", family="starter", model=model.name) == model.escalations
        assert value("jetsel_model_loaded", family="starter", model=model.name) == 1
        if model.runs:
            assert value("jetsel_run_seconds_count", family="starter", model=model.name) == model.runs
    assert value("jetsel_reloads_total", outcome="ok") == 1
    assert value("jetsel_stage_seconds_count", stage="total") == 980
    assert value("jetsel_stage_seconds_bucket", stage="total", le="+Inf") == 980
    assert value("jetsel_deadlines_total", outcome="on_time") == status.answers.on_time
    assert status.answers.on_time + status.answers.late == 240
    drift = family.drift
    assert drift.photographs == 500
    assert drift.hint is not None, "drawings are no photographs"
    assert value("jetsel_recalibration_hint", family="starter") == 1
    for model in drift.confidences:
        shifted = value("jetsel_confidence_shifted", family="starter", model=model.model)
        assert shifted == model.is_significant
    assert value("jetsel_queue_limit_requests") == status.queue.most_requests
    assert drift.highest is not None
    assert value("jetsel_drift_index", family="starter", feature=drift.highest) == drift.indices[drift.highest] > 0.25


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("promising")
    family = family_with_promises(folder / "cats", expected=ExpectedStatistics({}, {}))
    with serving(folder, family) as daemon, opened(daemon.endpoint) as gateway:
        yield gateway


def test_a_level_is_kept_marked_refused_or_not_to_be_had(gateway: Gateway, jpeg: bytes) -> None:
    def asked(query: str) -> tuple[int, object, object]:
        status, found, _ = gateway.ask("POST", f"/classify?{query}", jpeg, JPEG)
        return status, found.get("in_doubt", found.get("code")), found.get("wrong_at_most")

    assert asked("") == (200, False, None)
    assert asked("wrong_at_most=0.07") == (200, False, ANSWERED)
    assert asked(f"wrong_at_most={REFUSED}&on_doubt=use") == (200, True, REFUSED)
    assert asked(f"wrong_at_most={REFUSED}&on_doubt=refuse") == (422, "in-doubt", None)
    assert asked(f"wrong_at_most={MISSING}") == (422, "unmet-requirements", None)
    for wrong in ("0", "1.5", "nan", "few"):
        status, found, _ = gateway.ask("POST", f"/classify?wrong_at_most={wrong}", jpeg, JPEG)
        assert (status, found["code"]) == (400, "bad-request")
        assert "wrong_at_most" in found["error"]


def test_it_is_a_parameter_of_inference_and_of_its_reply(gateway: Gateway, jpeg: bytes) -> None:
    def told(n: int, **parameters: object) -> tuple[int, dict[str, object]]:
        tensor = {"name": "x", "datatype": "BYTES", "shape": [n], "data": [base64.b64encode(jpeg).decode()] * n}
        body = json.dumps({"inputs": [tensor], "parameters": parameters})
        status, found, _ = gateway.ask("POST", "/v2/models/cats/infer", body)
        return status, found.get("parameters", found)

    status, one = told(1, wrong_at_most=REFUSED, on_doubt="use")
    assert (status, one["in_doubt"], one["wrong_at_most"]) == (200, True, REFUSED)
    status, two = told(2, wrong_at_most=ANSWERED)
    assert (status, two["in_doubt"], two["wrong_at_most"]) == (200, "[false,false]", f"[{ANSWERED},{ANSWERED}]")
    assert told(2, wrong_at_most=REFUSED, on_doubt="refuse")[1]["code"] == "in-doubt"
    described = gateway.ask("GET", "/openapi.json")[1]
    query = described["paths"]["/classify"]["post"]["parameters"]
    assert "wrong_at_most" in {one["name"] for one in query}
    assert "wrong_at_most" in described["components"]["schemas"]["InferenceParameters"]["properties"]
