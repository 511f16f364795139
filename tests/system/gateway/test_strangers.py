"""What one client, one web page or one viewer may do to the others: nothing."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from jetsel.gateway.page import MOST_VIEWERS
from tests.system.daemons import Daemon, Start, encoded
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import JPEG, Gateway
from tests.waiting import until


def test_an_image_over_the_daemon_s_limit_is_refused_and_fails_nobody_else(
    start: Start, open_gateway: Open, jpeg: bytes
) -> None:
    gateway = open_gateway(start("[server]\nmax_image_mb = 1.0\n").endpoint, "--timeout-ms", "5000")
    large = b"\xff\xd8" + bytes(1_500_000)
    pixels = {
        "name": "x",
        "datatype": "UINT8",
        "shape": [1, 700, 700, 3],
        "parameters": {"binary_data_size": 1_470_000},
    }
    head = json.dumps({"inputs": [pixels]}).encode()

    def ask(number: int) -> tuple[int, str | None]:
        if number % 3 == 0:
            status, found, _ = gateway.ask("POST", "/classify", large, JPEG)
        elif number % 3 == 1:
            told = {"Inference-Header-Content-Length": str(len(head))}
            status, found, _ = gateway.ask("POST", "/v2/models/starter/infer", head + bytes(1_470_000), told)
        else:
            status, found, _ = gateway.ask("POST", "/classify", jpeg, JPEG)
        return status, found.get("code")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(60)))
    assert [status for status, _ in found] == [413, 413, 200] * 20, found
    assert {code for status, code in found if status == 413} == {"image-too-large"}
    _, refused, _ = gateway.ask("POST", "/classify", large, JPEG)
    assert "raise [server] max_image_mb" in refused["error"]
    assert "client" not in refused["error"], "the gateway reads it from the daemon"


@pytest.mark.slow
def test_an_image_up_to_the_daemon_s_own_limit_is_answered(start: Start, open_gateway: Open) -> None:
    gateway = open_gateway(start("[server]\nmax_image_mb = 24.0\n").endpoint)
    noise = encoded(np.random.default_rng(0).integers(0, 255, (2600, 2600, 3), np.uint8), ".png")
    assert 17_000_000 < len(noise) < 24_000_000, "over the default"
    assert gateway.ask("POST", "/classify", noise, {"Content-Type": "image/png"})[0] == 200


@pytest.mark.parametrize("length", ["9" * 5000, "9" * 11, "-1", "\u00b2"])
def test_a_length_that_is_no_number_of_bytes_is_a_bad_request(gateway: Gateway, length: str) -> None:
    told = {"Inference-Header-Content-Length": length}
    assert gateway.ask("POST", "/v2/models/starter/infer", b"{}", told)[0] == 400


def test_a_web_page_of_another_site_is_refused_unless_its_reader_follows_a_link(gateway: Gateway, jpeg: bytes) -> None:
    form = b'--a\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + jpeg + b"\r\n--a--\r\n"
    kind, path = {"Content-Type": "multipart/form-data; boundary=a"}, "/classify"
    assert gateway.ask("POST", path, form, kind)[0] == 200
    other = {"Origin": "http://attacker.example"}
    status, found, _ = gateway.ask("POST", path, form, kind | other)
    assert (status, found["code"]) == (403, "not-allowed")
    infer = {"Content-Type": "text/plain"} | other
    assert gateway.ask("POST", "/v2/models/starter/infer", b"{}", infer)[0] == 403
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    status, _, told = gateway.ask("GET", "/", headers=link)
    assert (status, told["x-frame-options"]) == (200, "DENY")
    assert "frame-ancestors 'none'" in told["content-security-policy"]
    assert gateway.ask("GET", "/", headers=link | {"Sec-Fetch-Dest": "iframe"})[0] == 403
    assert gateway.ask("GET", "/events", headers=link | {"Sec-Fetch-Mode": "no-cors"})[0] == 403


def test_another_site_may_not_decide_about_saved_images(
    shared_daemon: Daemon, open_gateway: Open, tmp_path: Path
) -> None:
    reviewing = open_gateway(shared_daemon.endpoint, command=("review", str(tmp_path)))
    headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "cross-site"}
    assert reviewing.ask("POST", "/review/undo", b"{}", headers)[0] == 403
    for wrong in ("/review/next?before=a", "/review/image?path=a&path=b", "/review/image?path="):
        assert reviewing.ask("GET", wrong)[0] == 400


def test_a_name_that_a_stranger_may_have_made_to_resolve_here_is_refused(
    shared_daemon: Daemon, gateway: Gateway, open_gateway: Open
) -> None:
    name = {"Host": "attacker.example:8000"}
    status, found, _ = gateway.ask("GET", "/v2/models", headers=name)
    assert (status, found["code"]) == (403, "not-allowed")
    assert "--behind-proxy" in found["error"]
    assert gateway.ask("GET", "/v2/models", headers={"Host": "board"})[0] == 200
    proxied = open_gateway(shared_daemon.endpoint, "--behind-proxy")
    assert proxied.ask("GET", "/v2/models", headers=name)[0] == 200


def test_viewers_have_a_bound_and_leave_room_when_they_leave(gateway: Gateway) -> None:
    def view() -> tuple[socket.socket, bytes]:
        viewer = socket.create_connection(("127.0.0.1", gateway.port), timeout=60)
        viewer.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return viewer, viewer.recv(12)[9:]

    def n_let_in() -> int:
        with ThreadPoolExecutor(MOST_VIEWERS + 8) as pool:
            viewers = list(pool.map(lambda _: view(), range(MOST_VIEWERS + 8)))
        for viewer, _ in viewers:
            viewer.close()
        assert {status for _, status in viewers} <= {b"200", b"429"}
        return [status for _, status in viewers].count(b"200")

    assert n_let_in() == MOST_VIEWERS
    until(lambda: n_let_in() == MOST_VIEWERS)
