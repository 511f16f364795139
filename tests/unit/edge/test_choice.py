"""Which of several edges is asked, by what a usual photograph takes at each: by hand-worked numbers."""

from __future__ import annotations

from jetsel.edge.messages import AskResult, Remote, State
from jetsel.edge.server import EdgeServers, Server

REMOTES = {name: Remote(name, "encoded", "ranked", None, None, ["n1"], None, b"", b"") for name in ("l", "xl")}


def look(number: int, took_ms: float | None, refused: dict[str, str] | None = None) -> State:
    """What a look shows; took_ms: with the first model, None where the edge is away."""
    if took_ms is None:
        return State(number, "away")
    return State(number, None, refused or {}, [("l", AskResult(-1, b"", None, 100, 100, took_ms, 1.0))])


def choice_of(*took_ms: float | None) -> EdgeServers:
    made = EdgeServers([Server(f"http://edge-{number}", REMOTES) for number in range(len(took_ms))])
    for number, one_ms in enumerate(took_ms):
        see(made, number, one_ms)
    return made


def see(choice: EdgeServers, number: int, took_ms: float | None) -> int:
    """Look at an edge; return the number of the one that is in use then."""
    choice.servers[number].look_at(look(number, took_ms))
    choice.saw(choice.servers[number])
    return choice.servers.index(choice.used)


def test_another_comes_into_use_once_it_was_faster_by_a_fifth_twice_in_a_row() -> None:
    choice = choice_of(100.0, 79.0)
    assert choice.used is choice.servers[0], "once is chance"
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
    assert choice.able("xl") == [first, fast, slow]
    first.look_at(look(0, 10.0, {"xl": "it is not there"}))
    assert choice.able("xl") == [fast, slow]
    assert choice.able("xl", but=[fast]) == [slow]
    assert choice.able("l") == [first, fast, slow]


def test_a_look_at_which_it_was_no_faster_begins_the_count_anew() -> None:
    choice = choice_of(100.0, 10.0)
    choice.servers[1].reason = "away"
    choice.saw(choice.servers[1])
    assert [see(choice, 1, 10.0) for _ in range(2)] == [0, 1], "one look before does not count"
