"""A real daemon beside a real edge, another daemon behind our gateway; and docs/edge.md as it says, but for names."""

import contextlib
import re
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import jetsel
from jetsel import image
from jetsel.base.errors import BadRequestError, JetselError, RequirementsError
from jetsel.cli.status_text import edge_lines
from jetsel.wire import Answer
from tests.system.daemons import Daemon, Start, drawn, encoded, serving
from tests.system.edge.conftest import PICTURES, THERE, answers, edge_of, settings
from tests.system.gateway.gateways import Gateway, opened, token_file
from tests.waiting import until


@pytest.fixture(scope="module")
def gateway(shared_daemon: Daemon) -> Iterator[Gateway]:
    """The edge's, for tests that leave it as it was."""
    with opened(shared_daemon.endpoint) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def here(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Iterator[jetsel.Client]:
    """A client of a device beside that edge."""
    folder = tmp_path_factory.mktemp("device")
    with (
        serving(folder, settings(gateway.url, "mj_per_kb = 0.5") + "accuracy_at_px = { 64 = 0.1 }\n") as daemon,
        jetsel.Client(daemon.endpoint) as client,
    ):
        until(lambda: answers(client))
        yield client


def test_a_model_of_the_edge_answers_as_it_does_there_for_files_and_for_frames(
    here: jetsel.Client, shared_daemon: Daemon
) -> None:
    with jetsel.Client(shared_daemon.endpoint) as there:
        for picture in PICTURES:
            expected, found = there.classify(picture, model="xl"), here.classify(picture, model="edge:xl")
            assert (found.label, [ran.model for ran in found.ran]) == (expected.label, ["edge:xl"])
            assert found.probability == pytest.approx(expected.probability, abs=1e-4)
        frame = here.classify(drawn(3), model="edge:xl")
        assert frame.probability == pytest.approx(there.classify(drawn(3), model="xl").probability, abs=0.2)
        (crop,) = here.classify(drawn(3), boxes=[(8, 16, 64, 48)], model="edge:xl")
        sent = image.jpeg(drawn(3)[16:64, 8:72])
        assert isinstance(crop, Answer)
        assert crop.probability == pytest.approx(there.classify(sent, model="xl").probability, abs=1e-4)
    (family,) = here.status().families
    assert [model.name for model in family.models] == ["xs", "s"], "it is none of the device's"
    assert family.fallback == "s"
    assert "rejected" not in str(family.calibration), "it was made with all models, and serves without some"
    assert "not served" in family.because
    assert here.classify(PICTURES[0]).policy == family.default_policy


def rewrite(daemon: Daemon, text: str) -> None:
    daemon.config.write_text(f'[server]\nendpoint = "{daemon.endpoint}"\n{text}\n[power]\nsensor = "none"\n')


def test_a_reload_keeps_the_edge_refuses_what_is_wrong_and_what_needs_an_edge_that_is_gone_is_refused(
    shared_daemon: Daemon, start: Start
) -> None:
    with opened(shared_daemon.endpoint) as gateway:
        daemon = start(settings(gateway.url))
        with jetsel.Client(daemon.endpoint) as client:
            until(lambda: answers(client))
            client.reload()
            assert client.classify(PICTURES[0], model="edge:xl").model == "edge:xl", "it is connected still"
            rewrite(daemon, settings(gateway.url, 'family = "dogs"'))
            with pytest.raises(JetselError, match=r"edge\.family: there is no family 'dogs'"):
                client.reload()
            assert client.classify(PICTURES[0], model="edge:xl").model == "edge:xl"
            gateway.process.kill()
            until(lambda: not answers(client) and edge_of(client).reason is not None)
            assert "is away" in edge_lines(edge_of(client))[0]
            with pytest.raises(RequirementsError, match="edge:m and edge:l and edge:xl cannot be used"):
                client.classify(PICTURES[0], least_accuracy=0.43)
            rewrite(daemon, settings(gateway.url, 'allow = "never"'))
            client.reload()
            with pytest.raises(JetselError, match="has no model 'edge:xl'"):
                client.classify(PICTURES[0], model="edge:xl")


@pytest.mark.slow
def test_a_deadline_is_kept_with_the_best_that_comes_and_no_photograph_leaves_that_must_stay(
    gateway: Gateway, shared_daemon: Daemon, start: Start
) -> None:
    daemon = start(settings(gateway.url, 'duplicate = "always"'))
    with jetsel.Client(shared_daemon.endpoint) as there, jetsel.Client(daemon.endpoint) as here:
        until(lambda: answers(here))
        found = [here.classify(picture, deadline_ms=60_000) for picture in PICTURES]
        expected = [there.classify(picture, model="m-night") for picture in PICTURES]
        assert [(one.policy, one.model, one.label) for one in found] == [
            ("deadline", "edge:m-night", one.label) for one in expected
        ]
        kept = here.classify(PICTURES[0], deadline_ms=60_000, on_device=True)
        assert all(not ran.model.startswith("edge:") for ran in kept.ran)
        with pytest.raises(BadRequestError, match="edge:xl runs on the edge server"):
            here.classify(PICTURES[0], model="edge:xl", on_device=True)
        gateway.process.send_signal(signal.SIGSTOP)
        late = [here.classify(picture, deadline_ms=400) for picture in PICTURES]
        gateway.process.send_signal(signal.SIGCONT)
        assert all(one.model in ("xs", "s") for one in late), "what is here answers"


def test_what_nothing_here_is_accurate_enough_for_goes_to_the_edge(here: jetsel.Client) -> None:
    assert here.classify(PICTURES[0], least_accuracy=0.35).model == "s"  # of 0.358; the edge's have up to 0.440
    asked = here.classify(PICTURES[0], least_accuracy=0.43)
    assert (asked.policy, asked.model) == ("requirements", "edge:m-night")
    with pytest.raises(RequirementsError, match=r"single:s comes nearest with 0\.3579.*may not leave"):
        here.classify(PICTURES[0], least_accuracy=0.43, on_device=True)
    assert here.classify(PICTURES[0], least_accuracy=0.43, most_energy_mj=100.0).model == "edge:m-night"
    with pytest.raises(RequirementsError, match=r"0\.5 mJ: edge:"):
        here.classify(PICTURES[0], least_accuracy=0.43, most_energy_mj=0.5)  # of 1 kB


def test_a_photograph_is_reduced_for_a_model_of_that_size_and_what_was_sent_is_told(here: jetsel.Client) -> None:
    large = encoded(drawn(1, 900, 1200))
    (whole,), (reduced,) = (here.classify(large, model=name).ran for name in ("edge:xl", "edge:xl@64"))
    assert len(large) <= (whole.sent_bytes or 0)
    assert (reduced.sent_bytes or 0) < len(large) / 5
    told = edge_of(here)
    assert told.sent_bytes >= len(large)
    assert [model.name for model in told.models] == list(THERE)
    assert all(model.mean_ms is not None for model in told.models), "they are tried at connection"


TEXT = (Path(__file__).parents[3] / "docs" / "edge.md").read_text("utf-8")


@pytest.mark.slow
def test_a_device_asks_the_larger_models_of_its_sites_edges(start: Start, tmp_path: Path) -> None:
    section = TEXT.split("\n## A site's edge\n")[1].split("\n## ")[0]
    site, options, device, checks = re.findall(r"^```\w+\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    token = str(token_file(tmp_path))
    options = options.split("JETSEL_GATEWAY_OPTIONS=")[1].replace("/etc/jetsel/gateway.token", token)
    listen = shlex.split(options.replace("0.0.0.0:8000", "127.0.0.1:0"))
    with contextlib.ExitStack() as stack:
        sites = [start(site, name=name) for name in ("edge-1", "edge-2")]
        gateways = [stack.enter_context(opened(one.endpoint, *listen)) for one in sites]
        for name, gateway in zip(("edge-1", "edge-2"), gateways, strict=True):
            device = device.replace(f"http://{name}.site:8000", gateway.url)
        daemon = start(device.replace("/etc/jetsel/edge.token", token), name="device")
        here, there = (stack.enter_context(jetsel.Client(one.endpoint, retry=False)) for one in (daemon, sites[0]))
        until(lambda: all(one.reason is None for one in edge_of(here).servers))
        (family,) = here.status().families
        assert [model.name for model in family.models] == ["xs", "s"]
        assert "rejected" not in family.calibration
        (deadline_ms,) = map(float, re.findall(r"--deadline-ms (\d+)", checks))
        until(lambda: any(_answers(here, picture, deadline_ms) == "edge:m-night" for picture in PICTURES))
        for model in ("l", "xl"):
            expected = [there.classify(picture, model=model).label for picture in PICTURES]
            assert [here.classify(picture, model=f"edge:{model}").label for picture in PICTURES] == expected
        used, (other,) = edge_of(here).url, [one.url for one in edge_of(here).servers if one.url != edge_of(here).url]
        next(gateway for gateway in gateways if gateway.url == used).process.kill()
        assert here.classify(PICTURES[0], model="edge:xl").model == "edge:xl", "the next one answers"
        until(lambda: edge_of(here).url == other)


def _answers(client: jetsel.Client, picture: bytes, deadline_ms: float) -> str | None:
    """The model that answers by itself, None if a busy machine kept no deadline."""
    with contextlib.suppress(JetselError):
        return client.classify(picture, deadline_ms=deadline_ms).model
    return None
