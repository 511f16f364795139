"""The edge servers of a device by hand: the network's time, which of several is asked, and what goes to the next."""

import queue
import time
from pathlib import Path

import numpy as np
import pytest

from jetsel.base.config import parse
from jetsel.base.errors import ConfigError, EngineDiedError, JetselError
from jetsel.edge.messages import AskResult, Remote, State
from jetsel.edge.models import open_edge
from jetsel.edge.runner import EdgeClient, EdgePayload, _PendingRequest
from jetsel.edge.server import EdgeServer, EdgeServers, LinkEstimate
from jetsel.zoo import STARTER, scan


def test_before_there_is_evidence_it_is_twice_the_slowest_and_more_for_more_bytes() -> None:
    link = LinkEstimate()
    assert link.estimate(1000) is None
    link.observe(1000, 10.0)
    link.observe(1000, 30.0)
    assert link.estimate(1000) == (60.0, 0.0)
    assert link.estimate(500) == (60.0, 0.0)
    assert link.estimate(3000) == (180.0, 0.0)


def test_latency_and_bandwidth_are_told_apart_by_sizes() -> None:
    link, chance = LinkEstimate(), np.random.default_rng(1)
    for size in chance.integers(10_000, 200_000, 60).tolist():
        link.observe(size, 40 + size / 2500)
    for size in (0, 50_000, 400_000):
        found = link.estimate(size)
        assert found[0] == pytest.approx(40 + size / 2500, rel=1e-3)


def test_photographs_of_one_size_give_no_bandwidth_and_noise_a_deviation() -> None:
    link, chance = LinkEstimate(), np.random.default_rng(2)
    for _ in range(400):
        link.observe(50_000, float(chance.normal(60, 8)))
    mean_ms, deviation_ms = link.estimate(100_000) or (0, 0)
    assert mean_ms == pytest.approx(60, abs=6)
    assert 4 < deviation_ms < 14


def test_a_path_that_changes_is_followed() -> None:
    link = LinkEstimate()
    for time_ms in [20.0] * 100 + [200.0] * 60 + [20.0] * 60:
        link.observe(50_000, time_ms)
    found = link.estimate(50_000)
    assert found[0] == pytest.approx(20, abs=15)


REMOTES = {name: Remote(name, "encoded", "ranked", None, None, ["n1"], None, b"", b"") for name in ("l", "xl")}


def look(number: int, took_ms: float | None, refused: dict[str, str] | None = None) -> State:
    """What a look shows; took_ms: with the first model, None where the edge is away."""
    if took_ms is None:
        return State(number, "away")
    return State(number, None, refused or {}, [("l", AskResult(-1, b"", None, 100, 100, took_ms, 1.0))])


def choice_of(*took_ms: float | None) -> EdgeServers:
    made = EdgeServers([EdgeServer(f"http://edge-{number}", REMOTES) for number in range(len(took_ms))])
    for number, one_ms in enumerate(took_ms):
        see(made, number, one_ms)
    return made


def see(choice: EdgeServers, number: int, took_ms: float | None) -> int:
    """Look at an edge; return the number of the one that is in use then."""
    choice.servers[number].update(look(number, took_ms))
    choice.reconsider(choice.servers[number])
    return choice.servers.index(choice.current)


def test_another_comes_into_use_once_it_was_faster_by_a_fifth_twice_in_a_row() -> None:
    choice = choice_of(100.0, 79.0)
    assert choice.current is choice.servers[0], "once is chance"
    assert see(choice, 1, 79.0) == 1
    assert choice.handovers == 1
    assert [see(choice, 0, 75.0) for _ in range(8)] == [1] * 8, "less than a fifth of a difference is none"
    assert [see(choice, 1, took_ms) for took_ms in (300.0, 79.0)] == [1, 1], "only a look at the other can tell"


def test_the_fastest_that_is_there_follows_at_once_on_one_that_goes() -> None:
    choice = choice_of(10.0, 90.0, 30.0)
    assert see(choice, 0, None) == 2
    assert see(choice, 2, None) == 1
    assert see(choice, 1, None) == 1, "none is there"
    assert see(choice, 0, 500.0) == 0
    assert choice.handovers == 3


def test_a_model_is_asked_in_the_one_in_use_or_in_another_that_has_it() -> None:
    choice = choice_of(10.0, 90.0, 30.0)
    first, slow, fast = choice.servers
    assert choice.servers_for("xl") == [first, fast, slow]
    first.update(look(0, 10.0, {"xl": "it is not there"}))
    assert choice.servers_for("xl") == [fast, slow]
    assert choice.servers_for("xl", excluded=[fast]) == [slow]
    assert choice.servers_for("l") == [first, fast, slow]


def test_a_look_at_which_it_was_no_faster_begins_the_count_anew() -> None:
    choice = choice_of(100.0, 10.0)
    choice.servers[1].reason = "away"
    choice.reconsider(choice.servers[1])
    assert [see(choice, 1, 10.0) for _ in range(2)] == [0, 1], "one look before does not count"


FAILED = AskResult(7, None, "the link is cut", 100, 0, 5.0, None)


@pytest.mark.parametrize("left_s", [600.0, -0.001], ids=["in time", "too late"])
def test_what_failed_is_sent_to_the_next_edge_only_before_its_deadline(left_s: float) -> None:
    edge = object.__new__(EdgeClient)  # without its child: what came from it is brought here
    edge._servers = EdgeServers([EdgeServer(f"http://edge-{number}", REMOTES) for number in range(2)])
    edge._under_way, edge._outbox = {}, queue.SimpleQueue()
    for server in edge._servers.servers:
        server.reason = None
    came: list[AskResult | JetselError] = []
    request = _PendingRequest("l", EdgePayload(b"image"), time.monotonic() + left_s, came.append, edge._servers.current)
    edge._deliver_or_retry(request, FAILED)
    if left_s > 0:
        assert (came, edge._outbox.qsize(), edge._under_way) == ([], 1, {7: request})
        assert request.server is edge._servers.servers[1]
        edge._deliver_or_retry(request, FAILED)
        assert edge._outbox.qsize() == 1, "no third edge is there"
    assert [type(one) for one in came] == [EngineDiedError]
    assert edge._outbox.qsize() == (1 if left_s > 0 else 0)


def test_a_token_that_every_user_may_read_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o644)
    config = parse(f'[edge]\nurl = "http://edge"\ntoken_file = "{token}"\n[edge.models.xl]\nremote = "starter.xl"')
    with pytest.raises(ConfigError, match=r"edge\.token_file.*chmod o-rwx"):
        open_edge(config, scan([STARTER]).families["starter"])
