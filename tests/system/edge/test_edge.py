"""An edge over real HTTP: our gateway as one, which dies, stalls and comes back; and servers that lie."""

import json
import queue
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from jetsel.base.errors import BusyError, EngineDiedError, JetselError
from jetsel.edge.messages import AskResult
from jetsel.edge.runner import EdgeClient, EdgePayload
from jetsel.gateway import tensors
from tests.system.daemons import Daemon
from tests.system.edge.conftest import PICTURES, WNIDS, Open
from tests.system.gateway.gateways import opened
from tests.waiting import until


def ask(edge: EdgeClient, picture: bytes = PICTURES[0], patience_ms: float = 60_000.0) -> AskResult | JetselError:
    came: queue.SimpleQueue[AskResult | JetselError] = queue.SimpleQueue()
    edge.ask("l", EdgePayload(picture), patience_ms, came.put)
    return came.get(timeout=120)


@pytest.mark.slow
def test_its_process_is_replaced_and_what_was_under_way_is_told(shared_daemon: Daemon, open_edge: Open) -> None:
    with opened(shared_daemon.endpoint) as gateway:
        edge = open_edge(gateway.url)
        until(lambda: edge.unavailable("l") is None)
        gateway.process.send_signal(signal.SIGSTOP)
        came: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for _ in range(40):
            edge.ask("l", EdgePayload(PICTURES[0]), None, came.put)
        assert [type(came.get(timeout=60)) for _ in range(8)] == [BusyError] * 8, "32 are under way"
        edge.process.kill()
        assert {type(came.get(timeout=60)) for _ in range(32)} == {EngineDiedError}
        gateway.process.send_signal(signal.SIGCONT)
        until(lambda: edge.unavailable("l") is None)


class Liar(ThreadingHTTPServer):
    """Says that it is ready, and answers every inference with the bytes that a test sets."""

    def __init__(self, answer: bytes, metadata: bytes, elsewhere: str | None = None) -> None:
        """elsewhere: where inferences are redirected to."""
        self.answer, self.metadata, liar = answer, metadata, self
        self.delay_s, self.asked = 0.0, list[str]()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _say(self, body: bytes, status: int = 200) -> None:
                self.send_response(status)
                if status == 307:
                    self.send_header("Location", f"{elsewhere}{self.path}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                assert self.headers["Accept-Encoding"] == "identity"
                self._say(liar.metadata)

            def do_POST(self) -> None:
                threading.Event().wait(liar.delay_s)
                self.rfile.read(int(self.headers["Content-Length"]))
                liar.asked.append(self.path)
                self._say(liar.answer, 200 if elsewhere is None else 307)

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: Any) -> None:
        """Whoever is lied to may hang up."""

    def __exit__(self, *_: Any) -> None:
        self.shutdown()
        self.server_close()


ANSWER = json.dumps(
    {"outputs": [{"name": "top_k", "datatype": "BYTES", "shape": [1, 1], "data": [f"0.9:{WNIDS[0]}:a"]}]}
).encode()
HONEST = json.dumps(tensors.metadata()).encode()


LIES = (
    (b"[" * 1_000_000, "no ranked"),
    (b"7" * 9_000_000, "exceeds"),
    (ANSWER.replace(WNIDS[0].encode(), b"n000"), "not a class of the local"),
)


def test_an_edge_that_lies_costs_its_answer_and_nothing_else(open_edge: Open) -> None:
    with Liar(b"", HONEST) as liar:
        edge = open_edge(liar.url, refresh_s=0.05)
        for answer, words in LIES:
            liar.answer = answer
            until(lambda words=words: words in str(edge.unavailable("l")))  # type: ignore[misc]
            told = ask(edge)
            assert isinstance(told, EngineDiedError)
            assert words in str(told)
            assert edge.server("l").times["l"].mean_and_sd_ms(0.0) is None, "what it took is not believed"


@pytest.mark.slow
def test_a_model_that_slowed_down_is_seen_to_be_fast_again_though_nobody_asks_it(open_edge: Open) -> None:
    def mean_ms() -> float:
        known = edge.server("l").times["l"].mean_and_sd_ms(time.monotonic())
        return known[0]

    with Liar(ANSWER, HONEST) as server:
        edge = open_edge(server.url, refresh_s=0.05)
        until(lambda: edge.unavailable("l") is None)
        server.delay_s = 0.5
        assert all(isinstance(ask(edge), AskResult) for _ in range(3))
        slow_ms = mean_ms()
        assert slow_ms > 100
        server.delay_s = 0.0
        until(lambda: mean_ms() < slow_ms / 4)


def test_an_edge_is_asked_again_once_its_metadata_is_as_it_should_be(
    open_edge: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with Liar(ANSWER, b"[" * 1_000_000) as server:
        edge = open_edge(server.url)
        until(lambda: "RecursionError" in str(edge.unavailable("l")))
        until(lambda: "the edge server is not used for model l: " in caplog.text)
        server.metadata = HONEST
        until(lambda: edge.unavailable("l") is None)
        assert isinstance(ask(edge), AskResult)


def test_a_redirect_sends_the_image_to_no_other_host(open_edge: Open) -> None:
    with Liar(ANSWER, HONEST) as other, Liar(b"", HONEST, elsewhere=other.url) as server:
        edge = open_edge(server.url)
        until(lambda: "redirects to" in str(edge.unavailable("l")))
        assert isinstance(ask(edge), EngineDiedError)
        assert (other.asked, bool(server.asked)) == ([], True)
