"""`POST /classify`, its limits, who is let in, and the gateway's description of itself."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import openapi_spec_validator
import pytest

from tests.system.daemons import Daemon, Start, drawn, encoded
from tests.system.gateway.conftest import Open
from tests.system.gateway.gateways import JPEG, SECRET, Gateway, token_file
from tests.waiting import until


def test_a_body_and_a_form_get_the_answer_of_the_socket(gateway: Gateway, jpeg: bytes, tmp_path: Path) -> None:
    status, body, _ = gateway.ask("POST", "/classify?top_k=2&explain=true&model=m", jpeg, JPEG)
    assert status == 200
    assert (body["type"], body["policy"], len(body["top_k"])) == ("answer", "single:m", 2)
    assert body["explanation"]["steps"]
    photograph = tmp_path / "cat.jpg"
    photograph.write_bytes(jpeg)
    command = ["curl", "-sS", "-F", f"image=@{photograph}", f"{gateway.url}/classify?model=m"]
    form = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert f'"label":"{body["label"]}"' in form


@pytest.mark.parametrize(
    ("path", "body", "kind", "status", "code", "words"),
    [
        ("/classify", b"no image", "image/jpeg", 400, "bad-image", ""),
        ("/classify", b"x", "text/plain", 400, "bad-request", "image/jpeg"),
        ("/classify", b"", "image/jpeg", 400, "bad-image", "no bytes"),
        ("/classify?top_k=0", b"x", "image/jpeg", 400, "bad-request", "top_k"),
        ("/classify?polcy=chain", b"x", "image/jpeg", 400, "bad-request", "did you mean policy?"),
        ("/classify?family=dogs", b"x", "image/jpeg", 404, "unknown-family", "starter"),
        ("/classify", b"--a--", "multipart/form-data; boundary=a", 400, "bad-request", "-F image=@cat.jpg"),
        ("/clasify", b"x", "image/jpeg", 404, "bad-request", "/openapi.json"),
    ],
)
def test_what_is_wrong_is_said_with_what_helps(
    gateway: Gateway, path: str, body: bytes, kind: str, status: int, code: str, words: str
) -> None:
    got, found, _ = gateway.ask("POST", path, body, {"Content-Type": kind})
    assert (got, found["code"]) == (status, code), found
    assert words in found["error"]


@pytest.mark.parametrize(
    "options",
    [
        ["--data-binary", "@cat"],
        ["--data-binary", "@cat", "-H", "Content-Type:"],
        ["--data-binary", "@cat", "-H", "Content-Type: image/jpg"],
        ["--data-binary", "@cat", "-H", "Content-Type: binary/octet-stream"],
        ["-F", "photo=@cat"],
        ["-F", "image=<cat", "-F", "model=m"],
        ["-F", "file=@cat;type=text/plain", "-F", "model=m", "-F", "boxes=0,0,1,1", "-F", "boxes_unit=shares"],
    ],
    ids=["curl", "no type", "jpg", "binary", "any name", "no file name", "boxes"],
)
def test_the_bytes_decide_and_not_how_they_are_called(gateway: Gateway, tmp_path: Path, options: list[str]) -> None:
    address = f"{gateway.url}/classify{'' if 'model=m' in options else '?model=m'}"
    for suffix in (".jpg", ".png", ".webp"):
        (tmp_path / "cat").write_bytes(encoded(drawn(), suffix))
        command = ["curl", "-sS", *options, address]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout)
        (answer,) = found.get("answers", [found])
        assert answer["policy"] == "single:m"


def test_a_file_that_curl_has_changed_is_refused_with_the_option_that_keeps_it(
    gateway: Gateway, tmp_path: Path
) -> None:
    (tmp_path / "cat").write_bytes(encoded(drawn(), ".png"))
    command = ["curl", "-sS", "-d", "@cat", f"{gateway.url}/classify"]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout)
    assert (found["code"], "use --data-binary" in found["error"]) == ("bad-image", True)


@pytest.mark.parametrize(
    ("query", "fields", "words"),
    [
        ("", ["image=@cat", "policy=typo"], "typo"),
        ("", ["image=@cat", "polcy=chain"], "did you mean policy?"),
        ("?model=s", ["image=@cat", "model=m"], "model is 's' and 'm'"),
        ("?model=s&model=m", ["image=@cat"], "model is 's' and 'm'"),
        ("", ["image=@cat", "deadline_ms="], "deadline_ms is empty"),
        ("", ["image=@cat", "boxes_unit=shares"], "without boxes"),
        ("", ["image=@cat", "second=<cat"], "2 images"),
        ("", ["image=cat"], "no images: send one as a file"),
    ],
)
def test_what_a_form_says_beside_the_image_is_followed_or_refused(
    gateway: Gateway, jpeg: bytes, tmp_path: Path, query: str, fields: list[str], words: str
) -> None:
    (tmp_path / "cat").write_bytes(jpeg)
    command = ["curl", "-sS", f"{gateway.url}/classify{query}", *(part for one in fields for part in ("-F", one))]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert words in json.loads(done.stdout)["error"]


def test_a_compressed_body_is_refused_by_the_name_of_its_coding(gateway: Gateway, jpeg: bytes) -> None:
    for coding in ("gzip", "deflate", "br", "GZIP, identity"):
        for path in ("/classify", "/v2/models/starter/infer"):
            status, found, _ = gateway.ask("POST", path, gzip.compress(jpeg), JPEG | {"Content-Encoding": coding})
            assert (status, found["code"]) == (400, "bad-request")
            assert f"compressed ({coding})" in found["error"]
    assert gateway.ask("POST", "/classify", jpeg, JPEG | {"Content-Encoding": "identity"})[0] == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_read_however_it_comes(
    shared_daemon: Daemon, open_gateway: Open, jpeg: bytes
) -> None:
    gateway = open_gateway(shared_daemon.endpoint, "--max-body-mb", "0.1")
    assert gateway.ask("POST", "/classify", jpeg, JPEG)[0] == 200
    announced = gateway.ask("POST", "/classify", b"", JPEG | {"Content-Length": "5000000000"})
    pieces = gateway.ask("POST", "/classify", iter([b"x" * 65_536] * 400), JPEG, chunked=True)
    for status, found, _ in (announced, pieces):
        assert (status, found["code"]) == (413, "image-too-large")
        assert "--max-body-mb" in found["error"]


def test_more_requests_at_once_than_it_takes_are_told_to_come_later(
    shared_daemon: Daemon, open_gateway: Open, jpeg: bytes
) -> None:
    gateway = open_gateway(shared_daemon.endpoint, "--concurrency", "1")
    with urlopen(f"{gateway.url}/events") as viewer:
        assert viewer.readline() == b"event: status\n"
        status, found, told = gateway.ask("POST", "/classify", jpeg, JPEG)
        assert (status, found["code"], found["retry"], told["retry-after"]) == (503, "busy", True, "1")
        assert "--concurrency" in found["error"]
    until(lambda: gateway.ask("POST", "/classify", jpeg, JPEG)[0] == 200)


def test_with_a_token_file_only_who_bears_it_is_answered(
    shared_daemon: Daemon, open_gateway: Open, jpeg: bytes, tmp_path: Path
) -> None:
    gateway = open_gateway(shared_daemon.endpoint, "--token-file", str(token_file(tmp_path)))
    for wrong in ("", "Bearer wrong", SECRET, f"Basic {SECRET}", f"Bearer {SECRET}x", None):
        header = {} if wrong is None else {"Authorization": wrong}
        status, found, told = gateway.ask("POST", "/classify", jpeg, JPEG | header)
        assert (status, found["code"], told["www-authenticate"]) == (401, "not-allowed", "Bearer")
    assert gateway.ask("GET", "/", headers={"Authorization": f"bearer {SECRET}"})[0] == 200
    elsewhere = {"Host": "attacker.example:8000"}  # the secret is enough, whatever name leads here
    assert gateway.ask("POST", "/classify", jpeg, JPEG | {"Authorization": f"Bearer {SECRET}"} | elsewhere)[0] == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--listen", "0.0.0.0:0"], "use --token-file with a secret for them, or --behind-proxy"),
        (["--listen", "203.0.113.1:1", "--behind-proxy"], "name another with --listen"),
        (["--token-file", "/nowhere"], "cannot be read"),
    ],
)
def test_it_does_not_start_where_it_should_not(options: list[str], words: str) -> None:
    command = [sys.executable, "-m", "jetsel", "gateway", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert words in " ".join(done.stderr.split())
    assert done.stdout == "", "an address is printed once it answers"


def test_its_description_is_one_that_a_validator_accepts(gateway: Gateway) -> None:
    status, found, _ = gateway.ask("GET", "/openapi.json")
    assert status == 200
    openapi_spec_validator.validate(found)
    assert {"/classify", "/metrics", "/v2/models/{name}/infer"} <= set(found["paths"])


@pytest.mark.slow
def test_a_daemon_that_goes_and_comes_back_is_seen_and_nothing_has_to_be_started_again(
    start: Start, open_gateway: Open, jpeg: bytes
) -> None:
    daemon = start()
    gateway = open_gateway(daemon.endpoint, "--timeout-ms", "2000")

    def seen() -> tuple[int, int, bool]:
        ready, metrics = gateway.ask("GET", "/v2/health/ready")[0], gateway.ask("GET", "/metrics")[1].decode()
        return ready, gateway.ask("POST", "/classify", jpeg, JPEG)[0], "\njetsel_up 1.0" in metrics

    assert seen() == (200, 200, True)
    daemon.process.kill()
    daemon.process.wait()
    until(lambda: seen() == (503, 503, False))
    start()
    until(lambda: seen() == (200, 200, True))
