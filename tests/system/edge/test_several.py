"""Several edges, of which one is asked at a time: real gateways that die, stall, return and are far away."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Iterator

import pytest

import jetsel
from jetsel.base.errors import EngineDiedError, JetselError, ModelUnavailableError
from jetsel.cli.status_text import edge_lines
from jetsel.edge.messages import AskResult
from jetsel.edge.runner import EdgePayload
from jetsel.gateway.metrics import metrics
from tests.system.daemons import Daemon, Start
from tests.system.edge.conftest import PICTURES, Open, edge_of, settings
from tests.system.gateway.gateways import Gateway, launch
from tests.waiting import until

SENDERS = 4
MORE = 10  # answers, after something happened


@pytest.fixture
def gateways(shared_daemon: Daemon) -> Iterator[dict[str, Gateway]]:
    """Two, by their URLs."""
    opened = {one.url: one for one in (launch(shared_daemon.endpoint) for _ in range(2))}
    yield opened
    for one in opened.values():
        kill(one)


def kill(gateway: Gateway) -> None:
    with gateway.process as process:
        process.kill()


class Stream:
    """Clients that ask a model of the edge again and again, and what they hear."""

    def __init__(self, endpoint: str) -> None:
        self.answers, self.errors = [0] * SENDERS, list[JetselError]()
        self._endpoint, self._stop = endpoint, threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(SENDERS)]

    def __enter__(self) -> Stream:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self, number: int) -> None:
        with jetsel.Client(self._endpoint, timeout_ms=60_000, retry=False) as client:
            while not self._stop.is_set():
                try:
                    assert client.classify(PICTURES[number], model="edge:xl").model == "edge:xl"
                except JetselError as error:
                    self.errors.append(error)
                self.answers[number] += 1

    def goes_on(self) -> None:
        """Wait until every sender has heard more answers; fails where one was an error."""
        wanted = [count + MORE for count in self.answers]
        until(lambda: all(now >= then for now, then in zip(self.answers, wanted, strict=True)))
        assert self.errors == []


def both_are_there(client: jetsel.Client) -> bool:
    return all(server.reason is None for server in edge_of(client).servers)


@pytest.mark.slow
def test_no_request_of_a_stream_is_lost_while_edges_die_and_return(
    gateways: dict[str, Gateway], shared_daemon: Daemon, start: Start
) -> None:
    daemon = start(settings(list(gateways)))
    with jetsel.Client(daemon.endpoint, timeout_ms=60_000, retry=False) as client:
        until(lambda: both_are_there(client))
        before = edge_of(client)
        first, (second,) = before.url, [url for url in gateways if url != before.url]
        with Stream(daemon.endpoint) as stream:
            stream.goes_on()
            kill(gateways[first])
            stream.goes_on()
            until(lambda: edge_of(client).url == second)
            gateways[first] = launch(shared_daemon.endpoint, "--listen", f"127.0.0.1:{gateways[first].port}")
            until(lambda: both_are_there(client))
            kill(gateways[second])
            stream.goes_on()
            until(lambda: edge_of(client).url == first)
        after = edge_of(client)
        assert after.handovers >= before.handovers + 2
        answered = {server.url: server.runs["answered"] for server in after.servers}
        assert min(answered.values()) >= MORE
        assert after.runs["answered"] == sum(answered.values())
        assert any(second in line and "is away" in line for line in edge_lines(after))
        samples = {metric.name: metric.samples for metric in metrics(client.status())}
        in_use = {one.labels["url"]: one.value for one in samples["jetsel_edge_in_use"]}
        assert in_use == {first: 1, second: 0}
        assert "event=edge-handover" in daemon.log.read_text()
        kill(gateways[first])
        until(lambda: edge_of(client).reason is not None)
        with pytest.raises((ModelUnavailableError, EngineDiedError), match=first):
            client.classify(PICTURES[0], model="edge:xl")
        assert client.classify(PICTURES[0], deadline_ms=60_000).model in ("xs", "s"), "what is here answers"


@pytest.mark.slow
def test_what_is_under_way_at_an_edge_that_is_silent_is_sent_to_the_next(
    gateways: dict[str, Gateway], open_edge: Open
) -> None:
    edge = open_edge(*gateways)
    until(lambda: all(server.reason is None for server in edge.status().servers))
    used = gateways[edge.status().url]
    used.process.send_signal(signal.SIGSTOP)
    came: queue.SimpleQueue[AskResult | JetselError] = queue.SimpleQueue()
    for _ in range(12):  # more than there are connections
        edge.ask("l", EdgePayload(PICTURES[0]), None, came.put)
    answers = [came.get(timeout=60) for _ in range(12)]
    assert [one for one in answers if not isinstance(one, AskResult)] == []
    until(lambda: edge.status().url != used.url)
    runs = {server.url: server.runs for server in edge.status().servers}
    assert runs[used.url] == {"failed": 12}
    assert runs[edge.status().url] == {"answered": 12}
