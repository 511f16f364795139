"""The results of the owners' sets as tables: turns are pooled, weighted by their images."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

README = Path(__file__).parents[2] / "README.md"
BLOCK = re.compile(r"(?<=<!-- owners -->\n).*?(?=<!-- /owners -->)", re.DOTALL)
DEFAULT, BEST, HINDSIGHT = "the default", "best single model by the calibration", "best single model in hindsight"
ORACLE, SINGLE = "oracle", "single:"
SHOWN_LEVEL = 0.05  # of the levels that are promised, the one nearest to it is shown
FEW = 10  # images of a class to calibrate on: a set with fewer is described by a sentence

Plain = Mapping[str, Any]


class Share(NamedTuple):
    """A share of images, from 0 to 1, with its 95 % interval."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{100 * self.share:.1f} % ({100 * self.low:.1f} to {100 * self.high:.1f})"


class Row(NamedTuple):
    """What answers, pooled over the turns. names: in each turn. energy_mj: None if it is not known."""

    names: Sequence[str]
    right: Share
    time_ms: float
    energy_mj: float | None


def turn_of(calibrated: Plain, evaluated: Plain) -> dict[str, Any]:
    """Return what the tables need of what `jetsel calibrate --json` and `jetsel evaluate --json` printed."""
    default = evaluated["default_policy"]
    judged = {ORACLE: evaluated["bounds"][ORACLE], **evaluated["policies"]}
    return {
        "images": evaluated["photographs"],
        "default": default,
        "best_single": SINGLE + calibrated["best_single"],
        "noisy": evaluated["noisy"],
        "energy_reason": evaluated["energy_reason"],
        "results": {
            name: {
                "right": [one["top1"], one["top1_interval"]["low"], one["top1_interval"]["high"]],
                "time_ms": one["time_ms"]["mean"],
                "energy_mj": None if one["energy_mj"] is None else one["energy_mj"]["mean"],
            }
            for name, one in judged.items()
            if name in (default, ORACLE) or name.startswith(SINGLE)
        },
        "promises": [one for one in evaluated["promises"] if one["policy"] == default],
    }


def pooled(shares: Sequence[Share], counts: Sequence[float]) -> Share:
    """Pool shares of independent images; the interval is that of Zou and Donner (2008, Statistics in Medicine 27)."""
    share = mean([one.share for one in shares], counts)
    weighted = [(one, count / sum(counts)) for one, count in zip(shares, counts, strict=True)]
    below = math.hypot(*(weight * (one.share - one.low) for one, weight in weighted))
    above = math.hypot(*(weight * (one.high - one.share) for one, weight in weighted))
    return Share(share, share - below, share + above)


def mean(values: Sequence[float], counts: Sequence[float]) -> float:
    """Return the mean of values that stand for these many images."""
    return sum(value * count for value, count in zip(values, counts, strict=True)) / sum(counts)


def rows(turns: Sequence[Plain]) -> dict[str, Row]:
    """Return the rows of one set by what they are called."""
    counts = [turn["images"] for turn in turns]

    def row(names: Sequence[str]) -> Row:
        found = [turn["results"][name] for turn, name in zip(turns, names, strict=True)]
        energies = [one["energy_mj"] for one in found]
        return Row(
            list(dict.fromkeys(name.removeprefix(SINGLE) for name in names)),
            pooled([Share(*one["right"]) for one in found], counts),
            mean([one["time_ms"] for one in found], counts),
            None if None in energies else mean(energies, counts),
        )

    single = [row([name] * len(turns)) for name in turns[0]["results"] if name.startswith(SINGLE)]
    return {
        DEFAULT: row([turn["default"] for turn in turns]),
        BEST: row([turn["best_single"] for turn in turns]),
        HINDSIGHT: max(single, key=lambda one: (one.right.share, -one.time_ms)),
        ORACLE: row([ORACLE] * len(turns)),
    }


def kept(turns: Sequence[Plain]) -> str:
    """Return what the default promises in every turn, nearest to 5 %, and what came of it on the other images."""
    by_level = [{one["wrong_at_most"]: one for one in turn["promises"]} for turn in turns]
    common = set.intersection(*(set(one) for one in by_level))
    if not common:
        return "nothing is promised"
    level = min(common, key=lambda one: (abs(one - SHOWN_LEVEL), one))
    checks = [one[level] for one in by_level]
    counts = [turn["images"] * one["answered"] for turn, one in zip(turns, checks, strict=True)]
    answered = sum(counts) / sum(turn["images"] for turn in turns)
    wrong = [Share(one["wrong"], **one["wrong_interval"]) for one in checks if one["answered"]]
    of_these = f", of these wrong {pooled(wrong, [count for count in counts if count])}" if wrong else ""
    return f"at most {100 * level:g} % wrong: answered {100 * answered:.1f} %{of_these}"


def table(sets: Plain) -> str:
    """Return the whole table in Markdown."""
    columns = "set | what answers | right (95 %) | time, ms | of the best single's | energy, mJ | promised and kept"
    lines = [f"| {columns} |", "|---|---|---:|---:|---:|---:|---|"]
    for name, one in sets.items():
        found = rows(one["turns"])
        for called, row in found.items():
            names = "" if called == ORACLE else f": {', '.join(row.names)}"
            energy = "not known" if row.energy_mj is None else f"{row.energy_mj:.1f}"
            times = f"{row.time_ms:.1f} | {row.time_ms / found[BEST].time_ms:.2f} | {energy}"
            promise = kept(one["turns"]) if called == DEFAULT else ""
            lines.append(f"| {name} | {called}{names} | {row.right} | {times} | {promise} |")
    return "\n".join([*lines, ""])


def results_page(results: Plain) -> str:
    """Return the page of the results in Markdown."""
    intro = (
        "# What a calibration gains on owners' images\n",
        f"Written by `python -m calibration.owners`: heads over {results['backbone']}, trained, calibrated and",
        "evaluated by the commands that every owner has, on images that neither the heads nor the calibration were",
        "fitted on. The oracle takes the cheapest model that is right on each image.\n",
    )
    notes = [line for name, one in results["sets"].items() for line in _notes(name, one)]
    return "\n".join([*intro, table(results["sets"]), *notes, *results["conditions"], ""])


def readme_with(text: str, results: Plain) -> str:
    """Return README with the short table between its two comments. Raises SystemExit if they are not there."""
    lines = [
        "",
        "| set | the default | best single model by the calibration | the default takes |",
        "|---|---:|---:|---:|",
    ]
    for name, one in results["sets"].items():
        found = rows(one["turns"])
        cells = [f"{100 * row.right.share:.1f} % in {row.time_ms:.1f} ms" for row in (found[DEFAULT], found[BEST])]
        more = found[DEFAULT].time_ms / found[BEST].time_ms - 1
        lines.append(
            f"| {name} | {' | '.join(cells)} | {100 * abs(more):.0f} % {'more' if more > 0 else 'less'} time |"
        )
    replaced, count = BLOCK.subn(lambda _: "\n".join([*lines, "", ""]), text)
    if count != 1:
        raise SystemExit("README.md: it must have the comments <!-- owners --> and <!-- /owners --> once")
    return replaced


def _notes(name: str, one: Plain) -> list[str]:
    """Return the lines below the table: images, seconds, what is not known, and what few images carry."""
    turns, classes = one["turns"], one["classes"]
    how = ", one half each by turns" if len(turns) > 1 else ""
    took = [f"{step} {', '.join(f'{value:.0f}' for value in spent)}" for step, spent in one["seconds"].items()]
    lines = [
        f"- {name}: {classes} classes; {one['trained_on']} images to train heads, {one['calibrated_on']} to calibrate"
        f"{how}, {sum(turn['images'] for turn in turns)} to evaluate; seconds: {'; '.join(took)}"
    ]
    lines += [f"- {name}: its times are noisy: {turn['noisy']}" for turn in turns if turn["noisy"]]
    lines += [f"- {name}: energy is not known: {why}" for why in {turn["energy_reason"]: 0 for turn in turns} if why]
    each, found = one["calibrated_on"] / classes, rows(turns)
    if each < FEW:
        right = [f"right on {found[row].right} in {found[row].time_ms:.1f} ms" for row in (DEFAULT, BEST)]
        few = f"what {each:.0f} images a class can carry: {DEFAULT} is {right[0]}, the {BEST} is {right[1]}"
        lines.append(f"- {name}: {few}")
    return lines
