"""Fill in the report's page with Jinja2: one HTML file that needs no network and runs no script."""

from __future__ import annotations

import base64
import os
import shlex
from functools import partial
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
from jetsel.calibrate.judge.findings import Findings, ImageFinding, ImageSample
from jetsel.calibrate.judge.words import level, percent, short, why_missing
from jetsel.calibrate.report import Listing
from jetsel.calibrate.report.drawing import draw
from jetsel.calibrate.report.overview import cards, compared_results, overview, statuses, trade_off
from jetsel.image import Limits

SIDE_PX = 144  # longer side of the small copies
QUALITY = 70  # JPEG quality: most images take 3 KB, noise takes 10 KB
LONGEST_PATH, LONGEST = 80, 120  # characters that a path and a class in a table may have


class PageImage(Struct, frozen=True):
    """One image of the page."""

    finding: ImageFinding
    path: str
    jpeg: str | None  # a small copy in base64, or None
    missing: str  # why there is no copy

    @property
    def policies(self) -> dict[str, list[str]]:
        """Answer -> policies that gave it, the right answer first."""
        answers = dict.fromkeys(sorted(self.finding.answers.values(), key=lambda answer: answer != self.finding.label))
        return {answer: [name for name, given in self.finding.answers.items() if given == answer] for answer in answers}


def page_images(sample: ImageSample, limits: image.Limits) -> list[PageImage]:
    """Return the images of a sample with small copies, and with paths relative to their common folder."""
    folder = os.path.commonpath([str(Path(one.path).parent) for one in sample.images] or [""])
    return [
        PageImage(one, short(os.path.relpath(one.path, folder), LONGEST_PATH), *_small_copy(Path(one.path), limits))
        for one in sample.images
    ]


def _small_copy(path: Path, limits: image.Limits) -> tuple[str | None, str]:
    """Return a small JPEG in base64 and an empty text, or None and the reason why there is none."""
    try:
        if not path.is_file():
            return None, "This image is no longer on disk."
        bgr = image.decode(image.read_file(path, limits), limits, SIDE_PX).bgr
    except (OSError, ValueError, BadImageError, ImageTooLargeError):
        return None, "This image can no longer be read."
    shorter_px = SIDE_PX * min(bgr.shape[:2]) / max(bgr.shape[:2])
    return base64.b64encode(image.jpeg(bgr, shorter_px, QUALITY)).decode(), ""


def render_page(findings: Findings, limits: Limits) -> str:
    """Return the HTML text of a calibration's report. limits: for reading its images."""
    results, best_single = compared_results(findings), findings.comparison.best_single
    return render_template(
        "page.html",
        findings=findings,
        facts=findings.calibration,
        say=words,
        cards=cards(findings),
        overview=overview(results, best_single, findings.calibration.images.labels_from, statuses(findings)),
        trade_off=trade_off(findings),
        promises_heading=promises_heading,
        promised_levels=promised_levels,
        next_steps=_next_steps(findings),
        differing=page_images(findings.differing, limits),
        page_images=partial(page_images, limits=limits),
        classes=_class_table(findings),
    )


def _next_steps(findings: Findings) -> list[tuple[str, str]]:
    """Return pairs of what the owner can do next, in words, and the command for it."""
    command = findings.command
    if findings.installed:
        return [("To undo this:", f"jetsel calibration rollback --family {shlex.quote(findings.calibration.family)}")]
    if not findings.is_allowed:
        return [("No policy is within the limits. Raise them or add a model, and run this again:", command)]
    if findings.current is not None and findings.current.name == findings.winner:
        return [("To install another policy:", f"{command} --policy NAME")]
    return [
        (f"To install {findings.winner} nevertheless:", f"{command} --force"),
        ("To compare with more certainty, add images and run this again:", command),
    ]


def render_template(name: str, **values: Any) -> str:
    """Return the text of a template in this folder, filled in. name: of its file. values: its variables."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("jetsel.calibrate", "report"),
        autoescape=True,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals["draw"] = draw
    style = resources.files("jetsel.calibrate.report").joinpath("style.css").read_text("utf-8")
    return environment.get_template(name).render(version=__version__, style=Markup(style), **values)


def _printable(value: Any) -> Any:
    """Replace the characters of a text that HTML cannot hold; Jinja2 calls this for each value before escaping it."""
    return words.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _class_table(findings: Findings) -> Listing | None:
    """Return the table of the winner's classes, the least accurate first; None if there are none."""
    columns = ["Class", "Images", "Right, %", "Most frequent wrong answers"]
    promise = findings.shown_promise
    columns += [] if promise is None else [f"Refused, % (at most {words.level(promise.wrong_at_most)} wrong)"]
    rows = []
    for one in findings.classes:
        instead = ", ".join(f"{short(name)} ({count})" for name, count in one.instead.items())
        refused = [] if one.refused is None else [words.percent(one.refused)]
        rows.append([short(one.name, LONGEST), f"{one.images:,}", words.percent(one.right), instead, *refused])
    return Listing(findings.winner, columns, rows, (3,)) if rows else None


NO_VALUE = "\u2013"  # an en dash, in cells of unknown shares


def promises_heading(promise: Promise | None) -> str:
    """Return the heading of the section on promises (guaranteed error rates). shown: the one to name, if any."""
    if promise is None:
        return "Promises: none can be made"
    return (
        f"Promises: at most {level(promise.wrong_at_most)} wrong, {percent(promise.answered)} % of the images answered"
    )


def promised_levels(policy: str, promises: Promises, unknown_images: int) -> Listing:
    """Return the table of the error rates that a policy can or cannot guarantee, in rising order.

    unknown_images: number of images of no known class that were tested; with 0, their column is left out.
    """
    columns = ["Wrong at most", "Images answered, %", "Answers wrong, %", "Time saved by early refusal, %"]
    columns += ["Unknown images refused, %"] if unknown_images else []
    cells = len(columns) - 1
    rows: dict[float, list[str]] = {}
    for missing in promises.missing:
        wrong_at_most = missing.wrong_at_most
        rows[wrong_at_most] = [level(wrong_at_most), *[NO_VALUE] * cells, f"no: {why_missing(missing)}"]
    for promise in promises.kept:
        shares = (promise.answered, promise.wrong, promise.saved, promise.unknown_refused)[:cells]
        texts = [NO_VALUE if share is None else percent(share) for share in shares]
        rows[promise.wrong_at_most] = [level(promise.wrong_at_most), *texts, "yes"]
    caption = f"Promised shares of wrong answers of {policy}"
    return Listing(caption, [*columns, "Promised"], [rows[key] for key in sorted(rows)], (len(columns),))
