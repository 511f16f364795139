"""Which browsers' requests a gateway without a token refuses, and that no other client is refused."""

from __future__ import annotations

import pytest

from jetsel.gateway.limits import refusal

NAMES = frozenset({"jetson-3.example.org"})


def refused(method: str = "POST", names: frozenset[str] | None = NAMES, **headers: str) -> bool:
    sent = {name.replace("_", "-").encode(): value for name, value in headers.items()}
    return refusal(method, sent, names) is not None


@pytest.mark.parametrize(
    ("host", "is_refused"),
    [
        ("127.0.0.1:8000 localhost:8000 LOCALHOST [::1]:8000 192.168.1.5:8000", False),
        ("board board:8000 board.local board.lan app.localhost:8000", False),
        ("jetson-3.example.org JETSON-3.example.org:8000 board.local.", False),
        ("attacker.example attacker.example:8000 127.0.0.1.attacker.example [::1", True),
        ("local.attacker.example 127.0.0.1@attacker.example", True),
    ],
)
def test_names_that_a_stranger_may_register_are_refused_as_hosts(host: str, is_refused: bool) -> None:
    for one in host.split():
        assert refused("GET", host=one) is is_refused, one
        assert not refused("GET", None, host=one), "a reverse proxy stands before it"
    assert not refused("GET"), "HTTP/1.0"


@pytest.mark.parametrize(
    ("site", "mode", "dest", "method", "is_refused"),
    [
        ("same-origin", "cors", "empty", "POST", False),
        ("none", "navigate", "document", "GET", False),
        ("cross-site", "navigate", "document", "GET", False),
        ("cross-site", "navigate", "iframe", "GET", True),
        ("cross-site", "navigate", "document", "POST", True),
        ("cross-site", "no-cors", "image", "POST", True),
        ("cross-site", "no-cors", "image", "GET", True),
        ("same-site", "cors", "empty", "POST", True),
    ],
)
def test_a_browser_that_names_the_site_is_believed(
    site: str, mode: str, dest: str, method: str, is_refused: bool
) -> None:
    told = {"host": "localhost:8000", "origin": "http://localhost:8000"}
    found = refused(method, **told, sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest)
    assert found is is_refused


@pytest.mark.parametrize(
    ("origin", "kind", "more", "is_refused"),
    [
        ("http://localhost:8000", "text/plain", {}, False),
        ("http://attacker.example", "text/plain;charset=UTF-8", {}, True),
        ("null", "multipart/form-data; boundary=a", {}, True),
        ("http://localhost:3000", "", {}, True),
        ("https://board", "application/octet-stream", {}, False),
        ("https://board", "multipart/form-data; boundary=a", {"x_forwarded_host": "board"}, False),
    ],
)
def test_an_older_browser_is_known_by_its_origin(
    origin: str, kind: str, more: dict[str, str], is_refused: bool
) -> None:
    assert refused(host="localhost:8000", origin=origin, content_type=kind, **more) is is_refused


@pytest.mark.parametrize("kind", ["", "application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
def test_curl_and_other_clients_send_neither_header_and_are_served(kind: str) -> None:
    assert not refused(host="127.0.0.1:8000", content_type=kind, user_agent="curl/8.0")
