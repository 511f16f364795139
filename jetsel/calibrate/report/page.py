"""The page: one HTML file that asks nothing of the network and runs no script, filled in by Jinja2."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from jetsel import __version__
from jetsel.calibrate.findings import Comparison, Differing, Findings, Mistakes
from jetsel.calibrate.report import Chart, Section, figures, models, policies, words
from jetsel.calibrate.report.charts import lines
from jetsel.calibrate.report.parts import Cell, Figure, Table
from jetsel.calibrate.report.words import Words, significant


def page(findings: Findings) -> str:
    """Return the page's text."""
    spoken = Words(findings.labels_from, findings.noisy)
    return rendered(
        "page.html",
        findings=findings,
        words=spoken,
        say=words,
        comparisons=[_comparison(one, findings, spoken) for one in findings.comparisons.values()],
        differing=_differing(findings.differing, spoken),
        mistakes=_mistakes(findings.mistakes),
        conditions=_table("conditions", "Conditions", ["What", "Value"], findings.conditions.items(), (1,)),
        skipped=_table(
            "skipped",
            "Photographs left out",
            ["Reason", "Photographs"],
            [(reason, f"{count:,}") for reason, count in findings.skipped.items()],
        ),
        left_out=_table("left-out", "The first of them", ["Photograph", "Reason"], findings.left_out, (1,)),
        models=_models(findings, spoken),
    )


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


def _comparison(comparison: Comparison, findings: Findings, spoken: Words) -> dict[str, Any]:
    """What the template shows of one criterion."""
    winner = findings.defaults[comparison.criterion]
    results = policies.ordered(comparison)
    return {
        "found": comparison,
        "winner": winner,
        "result": results[winner],
        "trade_off": figures.trade_off(comparison, spoken),
        "places": figures.places(comparison, spoken),
        "tables": policies.policy_tables(comparison, spoken),
        "terms": policies.terms(spoken),
        "unmeasured": policies.unmeasured(results),
        "chooser": models.chooser(comparison, spoken),
        "reliability": models.reliability(comparison),
    }


def _figure(key: str, chart: Chart) -> Figure:
    """A chart whose series are points, with its numbers."""
    rows = [[name, significant(x), significant(y)] for name, points in chart.series.items() for x, y in points]
    numbers = Table(f"{key}-numbers", f"{chart.title}: the numbers", ["Series", chart.x, chart.y], {"": rows})
    drawing = lines(chart.x, chart.y, chart.series, chart.series, {})
    return Figure(key, chart.title, chart.finding, drawing, numbers)


def _table(key: str, caption: str, columns: list[str], rows: Any, text: tuple[int, ...] = ()) -> Table | None:
    """A table of one body, None where it has no row."""
    listed = [list(row) for row in rows]
    return Table(key, caption, columns, {"": listed}, text) if listed else None


def _differing(found: list[Differing], spoken: Words) -> Table | None:
    """The photographs to which policies give different answers; a right answer is written as such."""
    names = list(found[0].answers) if found else []
    mark = "\u2713 right" if spoken.labels_from is None else "\u2713 agrees"

    def answer(one: Differing, name: str) -> Cell:
        given = one.answers[name]
        return (given, mark) if given == one.label else given

    rows = [[one.path, one.label, *(answer(one, name) for name in names)] for one in found]
    label = "Label" if spoken.labels_from is None else f"Answer of {spoken.labels_from}"
    columns = ["Photograph", label, *names]
    caption = f"{words.number_of(len(found), 'photograph')} to which policies give different answers"
    return _table("differing", caption, columns, rows, tuple(range(1, len(columns))))


def _mistakes(found: Mistakes | None) -> list[Table]:
    """The classes of the policy that is installed, and the photographs that no policy is right on."""
    if found is None:
        return []
    rows: list[list[Cell]] = []
    for one in found.classes:
        instead = ", ".join(f"{name} ({count})" for name, count in one.instead.items())
        rows.append([one.name, f"{one.photographs:,}", words.percent(one.right), instead])
    columns = ["Class", "Photographs", f"{found.policy} right, %", "Most often taken for"]
    by_class = _table("classes", f"{found.policy} by class, the worst first", columns, rows, (3,))
    caption = f"{words.number_of(found.hopeless, 'photograph')} on which every policy is wrong; the first of them"
    hopeless = _table("hopeless", caption, ["Photograph", "Label"], found.paths, (1,))
    return [table for table in (by_class, hopeless) if table is not None]


def _models(findings: Findings, spoken: Words) -> Table | None:
    """Each model's time, energy where it is known, and hash."""
    half_mj = findings.energies_half_mj
    energies = {
        model: f"{significant(mean)} \u00b1 {significant(half_mj.get(model))}"
        for model, mean in findings.energies_mj.items()
    }
    rows = [
        [model, significant(findings.costs_ms.get(model)), energies.get(model, words.UNKNOWN), sha256]
        for model, sha256 in findings.identities.items()
    ]
    columns = ["Model", spoken.time("Time of one photograph"), "Energy above idle power, mJ", "SHA-256"]
    return _table("models", "Models", columns, rows, (3,))
