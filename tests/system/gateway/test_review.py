"""A review over HTTP leaves a folder that a calibration reads."""

from __future__ import annotations

import json
from pathlib import Path

import jetsel
from jetsel.calibrate.record import find
from jetsel.zoo import STARTER, scan
from tests.system.daemons import Daemon, drawn, encoded
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import Gateway

JSON = {"Content-Type": "application/json"}
(FAMILY,) = scan([STARTER]).families.values()
FIRST, SECOND = FAMILY.labels.wnids[:2]


def decide(gateway: Gateway, image: str, verdict: str, identifier: str | None = None) -> tuple[int, dict[str, object]]:
    body = json.dumps({"image": image, "verdict": verdict, "identifier": identifier}).encode()
    status, found, _ = gateway.ask("POST", "/review/decide", body, JSON)
    return status, found


def test_images_are_reviewed_and_the_folder_is_one_that_a_calibration_reads(
    shared_daemon: Daemon, open_gateway: Open, tmp_path: Path
) -> None:
    for number, name in enumerate(("a-1.jpg", "b-2.jpg", "c-3.jpg")):
        (tmp_path / "doubts" / FIRST).mkdir(parents=True, exist_ok=True)
        (tmp_path / "doubts" / FIRST / name).write_bytes(encoded(drawn(number)))
    gateway = open_gateway(shared_daemon.endpoint, command=("review", str(tmp_path / "doubts")))
    status, pending, _ = gateway.ask("GET", "/review/next")
    assert (status, pending["left"], pending["label"]) == (200, 3, "a")
    status, suggested, _ = gateway.ask("GET", f"/review/suggest?path={pending['image']}")
    with jetsel.Client(shared_daemon.endpoint) as client:
        assert suggested == [[one.wnid, one.label] for one in client.classify(encoded(drawn(0)), top_k=5).top_k]
    assert decide(gateway, pending["image"], "right")[0] == 200
    status, pending = decide(gateway, f"{FIRST}/b-2.jpg", "wrong", SECOND)
    assert (status, pending["image"]) == (200, f"{FIRST}/c-3.jpg")
    status, error = decide(gateway, f"{FIRST}/b-2.jpg", "discard")
    assert (status, error["code"]) == (400, "bad-request")
    for wrong in ("/review/next?before=a", "/review/image?path=a&path=b", "/review/image?path="):
        assert gateway.ask("GET", wrong)[0] == 400
    assert decide(gateway, f"{FIRST}/c-3.jpg", "discard")[1]["left"] == 0
    found = find(tmp_path / "doubts-reviewed", FAMILY.labels, None, need_labels=True)
    assert {(one.path.name, FAMILY.labels.wnids[one.class_number or 0]) for one in found.photographs} == {
        ("a-1.jpg", FIRST),
        ("b-2.jpg", SECOND),
    }


def test_other_sites_may_not_decide(shared_daemon: Daemon, open_gateway: Open, tmp_path: Path) -> None:
    reviewing = open_gateway(shared_daemon.endpoint, command=("review", str(tmp_path)))
    status, _, _ = reviewing.ask("POST", "/review/undo", b"{}", JSON | {"Sec-Fetch-Site": "cross-site"})
    assert status == 403
