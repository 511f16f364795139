"""The part of the report on promises: how often answers are wrong if the least sure are refused."""

from __future__ import annotations

from jetsel.artefact.promise import Promise, Promises
from jetsel.calibrate.judge.words import level, percent, why_missing
from jetsel.calibrate.report import Listing

NOTHING = "\u2013"  # of a level that is not promised


def heading(found: Promises, shown: float | None) -> str:
    """The heading. shown: the level that it names, None if none is promised."""
    for one in found.kept:
        if one.wrong_at_most == shown:
            return f"Promises: at most {level(shown)} wrong, {percent(one.answered)} % of the images answered"
    return "Promises: none can be made"


def levels(policy: str, found: Promises, unknown_images: int) -> Listing:
    """The levels of a policy, by rising level."""
    columns = ["Wrong at most", "Images answered, %", "Answers wrong, %", "Time saved by early refusal, %"]
    columns += ["Unknown images refused, %"] if unknown_images else []
    cells = len(columns) - 1
    rows: dict[float, list[str]] = {}
    for missing in found.missing:
        most = missing.wrong_at_most
        rows[most] = [level(most), *[NOTHING] * cells, f"no: {why_missing(missing)}"]
    for one in found.kept:
        rows[one.wrong_at_most] = [level(one.wrong_at_most), *_shares(one)[:cells], "yes"]
    caption = f"Promised shares of wrong answers of {policy}"
    return Listing(caption, [*columns, "Promised"], [rows[key] for key in sorted(rows)], (len(columns),))


def _shares(one: Promise) -> list[str]:
    shares = (one.answered, one.wrong, one.saved, one.unknown_refused)
    return [NOTHING if share is None else percent(share) for share in shares]
