"""The first screen: what was decided and why, what it gains, and what 'right' and the times mean here."""

from __future__ import annotations

from jetsel.calibrate.findings import Comparison, Findings
from jetsel.calibrate.report.markup import Node, el, items
from jetsel.calibrate.report.words import SPACE, Words, in_percent, number_of, ratio, signed, significant

NAMES = {"top1": "Top-1", "top5": "Top-5"}


def heading(findings: Findings) -> Node:
    """The page's title and what it is about, in one line."""
    about = [
        number_of(findings.photographs, "photograph"),
        f"{findings.created}",
        f"objective: least {findings.objective}",
    ]
    return el(
        "header",
        el("p", "jetsel calibration report", class_="over"),
        el("h1", f"Family {findings.family}"),
        el("p", " \u00b7 ".join(about), class_="about"),
    )


def verdict(findings: Findings, words: Words) -> list[Node]:
    """What was decided, the warnings, and each criterion's figures and sentences."""
    decided = "Installed" if findings.installed else "Nothing was changed"
    return [
        el(
            "div",
            el("p", el("strong", decided), class_="decided"),
            el("p", findings.verdict or "No verdict was given."),
            el("p", f"Winner: {findings.winner}. Rival: {findings.rival}.", class_="about"),
            class_="verdict" if findings.installed else "verdict unchanged",
        ),
        *warnings(words),
        *[part for comparison in findings.comparisons.values() for part in _criterion(comparison, findings, words)],
    ]


def warnings(words: Words) -> list[Node]:
    """What every reader of the numbers must know, where there is such a thing."""
    notes = []
    if words.labels_from is not None:
        notes.append(
            el(
                "p",
                el("strong", f"Right means: agrees with {words.labels_from}. "),
                f"The labels are the answers of {words.labels_from}, not a person's.",
                class_="note",
            )
        )
    if words.noisy is not None:
        notes.append(el("p", el("strong", "The times are noisy: "), f"{words.noisy}.", class_="note"))
    return notes


def _criterion(comparison: Comparison, findings: Findings, words: Words) -> list[Node]:
    said = comparison.sentences
    return [
        el("h3", f"{NAMES.get(comparison.criterion, comparison.criterion)} in short"),
        _tiles(comparison, findings, words),
        items(said, class_="said") if said else el("p", "No sentence was written about this criterion."),
        *(
            [el("p", "The times in these sentences are noisy.", class_="about")]
            if said and words.noisy is not None
            else []
        ),
    ]


def _tiles(comparison: Comparison, findings: Findings, words: Words) -> Node:
    """The winner's accuracy, time and energy, and what they are beside the best single model's."""
    name = findings.defaults.get(comparison.criterion, findings.winner)
    result = (comparison.policies | comparison.bounds).get(name)
    if result is None:
        return el("p", f"{name} was not compared under this criterion.")
    top1 = comparison.criterion == "top1"
    share, against = (result.top1 if top1 else result.top5), result.vs_best_single
    points = against.top1_points if top1 else against.top5_points
    tiles = {
        f"{words.score(comparison.criterion)} of {name}": (
            in_percent(share),
            f"{signed(points)} points beside {comparison.best_single}, the best single model",
        ),
        f"Mean time of {name}": (
            words.ms(result.time_ms.mean),
            f"{words.times(against.time_ratio)} that of {comparison.best_single}",
        ),
    }
    if result.energy_mj is not None:
        tiles[f"Mean energy of {name}"] = (
            f"{significant(result.energy_mj.mean)}{SPACE}mJ",
            f"{ratio(against.energy_ratio)}{SPACE}times that of {comparison.best_single}",
        )
    parts = [
        el(
            "div",
            el("dt", name),
            el("dd", el("span", value, class_="value"), " ", el("span", beside, class_="interval")),
        )
        for name, (value, beside) in tiles.items()
    ]
    return el("dl", *parts, class_="tiles")
