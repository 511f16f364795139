"""A device asks real servers through a link with delay, jitter, loss and a bandwidth, and hears what it would say."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import jetsel
from jetsel.base.errors import JetselError
from tests.edge_servers.servers import Server, gateway, ray_serve, triton
from tests.link import Quality, link
from tests.system.daemons import Daemon, drawn, encoded, serving
from tests.system.gateway.gateways import Gateway, launch
from tests.waiting import until

PICTURES = [encoded(drawn(seed)) for seed in range(20)]


def asked(client: jetsel.Client, model: str) -> list[list[str]] | None:
    """The five best labels of every photograph, None where the model cannot be asked."""
    try:
        answers = [client.classify(picture, model=model, top_k=5) for picture in PICTURES]
    except JetselError:
        return None
    return [[one.wnid for one in answer.top_k] for answer in answers]


def test_a_link_that_is_cut_costs_no_answer_and_the_edge_is_used_again(tmp_path: Path) -> None:
    device = tmp_path / "device"
    device.mkdir()
    others = "".join(f'[edge.models.{name}]\nremote = "starter.{name}"\n' for name in ("m", "l"))
    settings = '[models]\nonly = ["xs", "s"]\n[edge]\nduplicate = "always"'
    with (
        link(Quality()) as opened,
        gateway(tmp_path) as server,
        serving(device, server.edge.replace("[edge]", settings, 1) + others) as daemon,
        jetsel.Client(daemon.endpoint, timeout_ms=60_000) as client,
    ):

        def is_used() -> bool:
            answers = [client.classify(picture, deadline_ms=1000) for picture in PICTURES[:5]]
            return any(answer.model.startswith("edge:") for answer in answers)

        until(is_used)
        opened.become(Quality(is_cut=True))
        answers = [client.classify(picture, deadline_ms=1000) for picture in PICTURES]
        assert all(answer.model in ("xs", "s") for answer in answers)
        opened.become(Quality())
        until(is_used)


@pytest.mark.parametrize("begin", [triton, ray_serve, gateway])
def test_a_server_answers_as_the_same_model_here(
    begin: Callable[[Path], AbstractContextManager[Server]], tmp_path: Path
) -> None:
    device = tmp_path / "device"
    device.mkdir()
    with (
        link(Quality()),
        begin(tmp_path) as server,
        serving(device, server.edge) as daemon,
        jetsel.Client(daemon.endpoint, timeout_ms=60_000) as client,
    ):
        answered = until(lambda: asked(client, "edge:xl"))
        assert answered == asked(client, "xl")


def test_a_device_whose_link_to_an_edge_is_cut_asks_another_until_that_goes(tmp_path: Path) -> None:
    device, there, nearby = (tmp_path / name for name in ("device", "there", "nearby"))
    for folder in (device, there, nearby):
        folder.mkdir()
    with (
        link(Quality()) as opened,
        gateway(there) as far,
        serving(nearby) as site,
        _launched(site, there / "token") as near,
        serving(device, far.edge.replace(f'"{far.url}"', json.dumps([near.url, far.url]))) as daemon,
        jetsel.Client(daemon.endpoint, timeout_ms=60_000, retry=False) as client,
    ):

        def asks(url: str) -> bool:
            edge = client.status().edge
            return edge is not None and edge.url == url and edge.reason is None

        def are_there() -> bool:
            edge = client.status().edge
            return edge is not None and all(server.reason is None for server in edge.servers)

        until(lambda: asks(far.url))
        near.process.send_signal(signal.SIGCONT)
        until(are_there)
        opened.become(Quality(is_cut=True))
        assert asked(client, "edge:xl") == asked(client, "xl"), "none is lost"
        until(lambda: asks(near.url))
        opened.become(Quality())
        until(are_there)
        near.process.kill()
        assert asked(client, "edge:xl") is not None
        until(lambda: asks(far.url))


@contextlib.contextmanager
def _launched(site: Daemon, token: Path) -> Iterator[Gateway]:
    """A gateway that does not answer yet: SIGCONT lets it."""
    opened = launch(site.endpoint, "--token-file", str(token))
    with opened.process as process:
        process.send_signal(signal.SIGSTOP)
        yield opened
        process.kill()
