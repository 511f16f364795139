"""A promised share of wrong answers over HTTP, by the Open Inference Protocol, and in the metrics."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from jetsel.artefact.calibration import Expected
from tests.system.daemons import Connect, Start
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import Gateway
from tests.system.gateway.test_metrics import samples
from tests.system.promises import ANSWERED, MISSING, REFUSED, family_with_promises

JPEG = {"Content-Type": "image/jpeg"}
OF_FEWEST = 200  # the requests that a share in doubt is read from


@pytest.fixture
def gateway(start: Start, open_gateway: Open, tmp_path: Path) -> Gateway:
    daemon = start(family_with_promises(tmp_path / "cats", expected=Expected({}, {})))
    return open_gateway(daemon.endpoint)


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


def test_metrics_have_the_levels_and_the_share_in_doubt(
    start: Start, connect: Connect, open_gateway: Open, jpeg: bytes, tmp_path: Path
) -> None:
    daemon = start(family_with_promises(tmp_path / "cats", expected=Expected({}, {})))
    peer = connect(daemon)
    for number in range(OF_FEWEST):
        peer.classify(jpeg, wrong_at_most=ANSWERED if number % 4 else REFUSED, on_doubt="refuse")
    found = samples(open_gateway(daemon.endpoint))

    def value(name: str, **labels: str) -> float:
        return found[name, frozenset(labels.items())]

    assert value("jetsel_promise_answered", family="cats", wrong_at_most="0.05") == 0.875
    assert value("jetsel_promise_answered", family="cats", wrong_at_most="0.02") == 0.25
    assert value("jetsel_requests_total", outcome="in-doubt") == 50
    assert value("jetsel_in_doubt_share", family="cats") == 0.25
    assert value("jetsel_in_doubt_calibrated", family="cats") == 0.75 * 0.125 + 0.25 * 0.75
