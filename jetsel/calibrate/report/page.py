"""The page: one HTML file that asks nothing of the network and runs no script, filled in by Jinja2."""

from __future__ import annotations

import base64
import os
import shlex
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup
from msgspec import Struct

from jetsel import __version__, image
from jetsel.artefact.promise import Promise, Promises
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.calibrate.judge import words
from jetsel.calibrate.judge.findings import DoubtfulFindings, Findings, ImageFinding, ImageSample
from jetsel.calibrate.judge.words import level, percent, short, why_missing
from jetsel.calibrate.report import Listing, Section
from jetsel.calibrate.report.drawing import draw
from jetsel.calibrate.report.overview import cards, compared_results, overview, statuses, trade_off
from jetsel.image import Limits

SIDE_PX = 144  # of the longer side
QUALITY = 70  # of JPEG: 3 KB for most images, and 10 KB for noise
LONGEST_PATH, LONGEST = 80, 120  # characters of a path, and of a class in a table


class PageImage(Struct, frozen=True):
    """One image of the page. jpeg: base64, or None, and then `missing` says why."""

    found: ImageFinding
    path: str
    jpeg: str | None
    missing: str

    @property
    def policies(self) -> dict[str, list[str]]:
        """The policies by their answer, the right one first."""
        answers = dict.fromkeys(sorted(self.found.answers.values(), key=lambda answer: answer != self.found.label))
        return {answer: [name for name, given in self.found.answers.items() if given == answer] for answer in answers}


def shown(sample: ImageSample, limits: image.Limits) -> list[PageImage]:
    """Read the images of a sample."""
    folder = os.path.commonpath([str(Path(one.path).parent) for one in sample.images] or [""])
    return [
        PageImage(one, short(os.path.relpath(one.path, folder), LONGEST_PATH), *_small(Path(one.path), limits))
        for one in sample.images
    ]


def _small(path: Path, limits: image.Limits) -> tuple[str | None, str]:
    """Return a small JPEG in base64, or None and why there is none."""
    try:
        if not path.is_file():
            return None, "This image is no longer on disk."
        bgr = image.decode(image.read_file(path, limits), limits, SIDE_PX).bgr
    except (OSError, ValueError, BadImageError, ImageTooLargeError):
        return None, "This image can no longer be read."
    shorter_px = SIDE_PX * min(bgr.shape[:2]) / max(bgr.shape[:2])
    return base64.b64encode(image.jpeg(bgr, shorter_px, QUALITY)).decode(), ""


def _doubtful(doubtful: DoubtfulFindings, limits: image.Limits) -> dict[str, list[PageImage]]:
    """Read the doubtful images, by their kind."""
    return {kind: shown(getattr(doubtful, kind), limits) for kind in ("contradicted", "near", "far")}


def page(findings: Findings, limits: Limits) -> str:
    """Return the page's text. limits: of the images that it shows."""
    results, best_single = compared_results(findings), findings.comparison.best_single
    return rendered(
        "page.html",
        findings=findings,
        say=words,
        cards=cards(findings),
        overview=overview(results, best_single, findings.labels_from, statuses(findings)),
        trade_off=trade_off(findings),
        promises_heading=promises_heading,
        promised_levels=promised_levels,
        next_steps=_next_steps(findings),
        differing=shown(findings.differing, limits),
        doubtful=None if findings.doubtful is None else _doubtful(findings.doubtful, limits),
        classes=_classes(findings),
    )


def _next_steps(findings: Findings) -> list[tuple[str, str]]:
    """What the owner can do now, each with the command for it."""
    command = findings.command
    if findings.installed:
        return [("To undo this:", f"jetsel calibration rollback --family {shlex.quote(findings.family)}")]
    if not findings.is_allowed:
        return [("No policy is within the limits. Raise them or add a model, and run this again:", command)]
    if findings.current is not None and findings.current.name == findings.winner:
        return [("To install another policy:", f"{command} --policy NAME")]
    return [
        (f"To install {findings.winner} nevertheless:", f"{command} --force"),
        ("To compare with more certainty, add images and run this again:", command),
    ]


def sections_page(command: str, title: str, sentences: Sequence[str], sections: Sequence[Section]) -> str:
    """Return the text of a page of sentences, then of charts and tables under their headings."""
    return rendered("sections.html", command=command, title=title, sentences=sentences, sections=sections)


def rendered(name: str, **values: Any) -> str:
    """Fill in one of the templates of this folder."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jetsel.calibrate", "report"),
        autoescape=True,
        finalize=_written,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["draw"] = draw
    style = resources.files("jetsel.calibrate.report").joinpath("style.css").read_text("utf-8")
    return environment.get_template(name).render(version=__version__, style=Markup(style), **values)


def _written(value: Any) -> Any:
    """What Jinja2 writes of a value, before it escapes it."""
    return words.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _classes(findings: Findings) -> Listing | None:
    """The classes of the winner, the worst first; None if there are none."""
    columns = ["Class", "Images", "Right, %", "Most frequent wrong answers"]
    refused_at = findings.refused_at
    columns += [] if refused_at is None else [f"Refused, % (at most {words.level(refused_at)} wrong)"]
    rows = []
    for one in findings.classes:
        instead = ", ".join(f"{short(name)} ({count})" for name, count in one.instead.items())
        refused = [] if one.refused is None else [words.percent(one.refused)]
        rows.append([short(one.name, LONGEST), f"{one.images:,}", words.percent(one.right), instead, *refused])
    return Listing(findings.winner, columns, rows, (3,)) if rows else None


NOTHING = "\u2013"  # of a level that is not promised


def promises_heading(promises: Promises, shown: float | None) -> str:
    """The heading. shown: the level that it names, None if none is promised."""
    for one in promises.kept:
        if one.wrong_at_most == shown:
            return f"Promises: at most {level(shown)} wrong, {percent(one.answered)} % of the images answered"
    return "Promises: none can be made"


def promised_levels(policy: str, promises: Promises, unknown_images: int) -> Listing:
    """The levels of a policy, by rising level."""
    columns = ["Wrong at most", "Images answered, %", "Answers wrong, %", "Time saved by early refusal, %"]
    columns += ["Unknown images refused, %"] if unknown_images else []
    cells = len(columns) - 1
    rows: dict[float, list[str]] = {}
    for missing in promises.missing:
        most = missing.wrong_at_most
        rows[most] = [level(most), *[NOTHING] * cells, f"no: {why_missing(missing)}"]
    for one in promises.kept:
        rows[one.wrong_at_most] = [level(one.wrong_at_most), *_shares(one)[:cells], "yes"]
    caption = f"Promised shares of wrong answers of {policy}"
    return Listing(caption, [*columns, "Promised"], [rows[key] for key in sorted(rows)], (len(columns),))


def _shares(one: Promise) -> list[str]:
    shares = (one.answered, one.wrong, one.saved, one.unknown_refused)
    return [NOTHING if share is None else percent(share) for share in shares]
