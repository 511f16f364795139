"""A device asks real servers through a link with delay, jitter, loss and a bandwidth, and hears what it would say."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

import jetsel
from benchmarks.link import Quality, link
from jetsel.base.errors import JetselError
from tests.edge_servers.servers import Server, gateway, ray_serve, triton
from tests.system.daemons import drawn, encoded, serving
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
    others = "".join(f'[edge.models.{name}]\nremote = "starter.{name}"\n' for name in ("s-night", "m-night", "m", "l"))
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
