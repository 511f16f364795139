"""`jetsel watch` with a promise: an answer that it does not cover is unknown, whatever class it would have."""

from __future__ import annotations

from pathlib import Path

import jetsel
from tests.system.daemons import Start, drawn
from tests.system.promises import ANSWERED, REFUSED, family_with_promises
from tests.system.watch.conftest import Open
from tests.system.watch.watchers import film, frames


def test_what_the_promise_does_not_cover_is_unknown_and_kept_by_its_likely_class(
    start: Start, watch: Open, tmp_path: Path
) -> None:
    daemon = start(family_with_promises(tmp_path / "cats"))
    kept = tmp_path / "kept"
    video = film(tmp_path / "day.avi", [drawn(seed) for seed in range(4)], 20)
    with jetsel.Client(daemon.endpoint) as client:
        likely = {client.classify(shown).wnid for shown in frames(video)}
    assert len(likely) > 1
    doubtful = watch(video, daemon.endpoint, "--wrong-at-most", str(REFUSED), "--stay", "1", "--save", str(kept))
    covered = watch(video, daemon.endpoint, "--wrong-at-most", str(ANSWERED), "--stay", "1")
    for watcher in (doubtful, covered):
        assert watcher.process.wait(60) == 0, watcher.said()
    (event,) = doubtful.events("label")
    assert (event["label"], event["id"], event["in_doubt"], event["wrong_at_most"]) == ("unknown", None, True, REFUSED)
    assert 0 < event["probability"] < 1
    folders = {path.name for path in kept.iterdir()}
    assert folders
    assert folders <= likely
    events = covered.events("label")
    assert {one["id"] for one in events} <= likely
    assert len(events) > 1
    assert {one["wrong_at_most"] for one in events} == {ANSWERED}
