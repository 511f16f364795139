"""Why a daemon that is there answers no question: it loads, it stops, or none of the asked family's models runs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from jetsel import wire
from jetsel.addons.cameras.health import Health, why_silent
from jetsel.wire.status import FamilyStatus, ModelStatus, StatusReply
from tests.unit.client.peer import Peer, Seen, daemon_like
from tests.unit.client.peer import status as a_status
from tests.waiting import until


def family(name: str, *states: str) -> FamilyStatus:
    models = [
        ModelStatus(f"m{number}", "1", state, None if state == "ready" else "its host died", 0, None, None, "tensorrt")
        for number, state in enumerate(states)
    ]
    return FamilyStatus(name, 10, models, [], {}, "", None, None, [])


def status(state: str, *families: FamilyStatus) -> StatusReply:
    reply = a_status(Seen(wire.Status(1, "a"), None))
    return replace(reply, state=state, default_family=families[0].name, families=list(families))


BROKEN = family("pets", "unavailable", "unavailable")


@pytest.mark.parametrize(
    ("told", "asked", "words"),
    [
        (status("loading", family("pets", "loading")), None, "it is loading"),
        (status("stopping", family("pets", "ready")), None, "it is stopping"),
        (status("ready", BROKEN), None, "no model of family pets runs: m0: its host died"),
        (status("ready", family("cars", "ready"), BROKEN), "pets", "no model of family pets"),
    ],
)
def test_a_daemon_that_cannot_answer_says_why(told: StatusReply, asked: str | None, words: str) -> None:
    assert words in (why_silent(told, asked) or "")


def test_one_model_that_runs_is_enough_and_other_families_do_not_matter() -> None:
    assert why_silent(status("ready", family("cars", "unavailable", "ready"), BROKEN), None) is None
    assert why_silent(status("ready", BROKEN, family("cars", "ready")), "cars") is None


def test_what_is_told_and_fails_does_not_end_the_looking(tmp_path: Path) -> None:
    told: list[tuple[str, str]] = []

    def tell(what: str, why: str) -> None:
        told.append((what, why))
        if len(told) < 3:
            raise OSError("no space left on the device")

    with Peer(tmp_path / "s.sock", daemon_like) as peer:
        health = Health(peer.endpoint, None, tell)
        until(lambda: health.is_available and len(told) > 2)
        health.close()
    assert told[0] == ("back", ""), "the first answer of a daemon is no return"
