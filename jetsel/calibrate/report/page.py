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
from jetsel.base.errors import BadImageError, ImageTooLargeError
from jetsel.calibrate.judge import words
from jetsel.calibrate.judge.findings import (
    DoubtfulFindings,
    DoubtfulImage,
    DoubtfulSample,
    Findings,
    ImageFinding,
    ImageSample,
    Mistakes,
)
from jetsel.calibrate.judge.words import Words, short, significant
from jetsel.calibrate.report import Chart, Section, policies, promises
from jetsel.calibrate.report.parts import Cell, ChartFigure, Table, lines
from jetsel.image import Limits

SIDE_PX = 144  # of the longer side
QUALITY = 70  # of JPEG: 3 KB for most images, and 10 KB for noise
LONGEST_PATH = 80  # characters


class ShownImage(Struct, frozen=True):
    """One image of the page. jpeg: base64, or None, and then `missing` says why."""

    found: ImageFinding | DoubtfulImage
    path: str
    jpeg: str | None
    missing: str

    @property
    def policies(self) -> dict[str, list[str]]:
        """The policies by their answer, the right one first."""
        assert isinstance(self.found, ImageFinding)
        answers = dict.fromkeys(sorted(self.found.answers.values(), key=lambda answer: answer != self.found.label))
        return {answer: [name for name, given in self.found.answers.items() if given == answer] for answer in answers}


def shown(sample: ImageSample | DoubtfulSample, limits: image.Limits) -> list[ShownImage]:
    """Read the images of a sample."""
    folder = os.path.commonpath([str(Path(one.path).parent) for one in sample.images] or [""])
    return [
        ShownImage(one, short(os.path.relpath(one.path, folder), LONGEST_PATH), *_small(Path(one.path), limits))
        for one in sample.images
    ]


def _doubtful(found: DoubtfulFindings, limits: image.Limits) -> dict[str, list[ShownImage]]:
    """Read the doubtful images, by their kind."""
    return {kind: shown(getattr(found, kind), limits) for kind in ("contradicted", "near", "far")}


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


LONGEST = 120  # characters of a path in a table


def page(findings: Findings, limits: Limits) -> str:
    """Return the page's text. limits: of the images that it shows."""
    wrong = findings.mistakes
    return rendered(
        "page.html",
        findings=findings,
        words=Words(findings.labels_from),
        say=words,
        policies=policies,
        promises=promises,
        next_steps=_next_steps(findings),
        differing=shown(findings.differing, limits),
        hopeless=[] if wrong is None else shown(wrong.hopeless, limits),
        doubtful=None if findings.doubtful is None else _doubtful(findings.doubtful, limits),
        classes=None if wrong is None else _classes(wrong),
        measured=_measured(findings),
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
    filled = [
        (
            one.heading,
            [_figure(f"chart-{place}-{number}", chart) for number, chart in enumerate(one.charts)],
            [_table(f"table-{place}-{number}", *listing) for number, listing in enumerate(one.listings)],
        )
        for place, one in enumerate(sections)
    ]
    return rendered("sections.html", command=command, title=title, sentences=sentences, sections=filled)


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
    style = resources.files("jetsel.calibrate.report").joinpath("style.css").read_text("utf-8")
    return environment.get_template(name).render(version=__version__, style=Markup(style), **values)


def _written(value: Any) -> Any:
    """What Jinja2 writes of a value, before it escapes it."""
    return words.clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _figure(key: str, chart: Chart) -> ChartFigure:
    """A chart whose series are points, with its numbers."""
    rows = [[name, significant(x), significant(y)] for name, points in chart.series.items() for x, y in points]
    numbers = Table(f"{key}-numbers", f"{chart.title}: the numbers", ["Series", chart.x, chart.y], {"": rows})
    drawing = lines(chart.x, chart.y, chart.series, chart.series, {})
    return ChartFigure(key, chart.title, chart.finding, drawing, numbers)


def _table(key: str, caption: str, columns: list[str], rows: Any, text: tuple[int, ...] = ()) -> Table | None:
    """A table of one body, None if it has no row."""
    listed = [list(row) for row in rows]
    return Table(key, caption, columns, {"": listed}, text) if listed else None


def _classes(found: Mistakes) -> Table | None:
    """The classes of the winner."""
    rows: list[list[Cell]] = []
    for one in found.classes:
        instead = ", ".join(f"{short(name)} ({count})" for name, count in one.instead.items())
        rows.append([short(one.name, LONGEST), f"{one.photographs:,}", words.percent(one.right), instead])
    return _table("classes", found.policy, ["Class", "Images", "Right, %", "Most frequent wrong answers"], rows, (3,))


def _measured(findings: Findings) -> list[Table]:
    """The conditions, the models with time, energy if it is known and hash, and the images that were left out."""
    half_mj = findings.energies_half_mj
    energies = {
        model: f"{significant(mean)} \u00b1 {significant(half_mj.get(model))}"
        for model, mean in findings.energies_mj.items()
    }
    listed = [
        [model, significant(findings.costs_ms.get(model)), energies.get(model, words.UNKNOWN), sha256]
        for model, sha256 in findings.identities.items()
    ]
    columns = ["Model", "Time of one image, ms", "Energy above idle power, mJ", "SHA-256"]
    reasons = [(reason, f"{count:,}") for reason, count in findings.skipped.items()]
    paths = [(short(path, LONGEST), reason) for path, reason in findings.left_out]
    tables = (
        _table("conditions", "Conditions", ["What", "Value"], findings.conditions.items(), (1,)),
        _table("models", "Models", columns, listed, (3,)),
        _table("skipped", "Images that were left out", ["Reason", "Images"], reasons),
        _table("left-out", f"{len(paths)} of them", ["Image", "Reason"], paths, (1,)),
    )
    return [table for table in tables if table is not None]
