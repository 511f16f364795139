"""The whole page: every number is on it, nothing of the owner's is markup, and what is missing is said."""

from __future__ import annotations

import functools
import re
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import msgspec
import pytest

from jetsel.calibrate.findings import Comparison, Findings
from jetsel.calibrate.report import render
from jetsel.calibrate.report.charts import lines
from jetsel.calibrate.report.policies import ordered
from jetsel.calibrate.report.words import clean, percent, ratio, signed, significant
from tests.unit.calibrate.report import sample

FINDINGS = sample.PAGES


class Reader(HTMLParser):
    """Reads a page as a browser would: its tags with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL))
        self.close()
        self.text = re.sub("[ \n]+", " ", self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def rendered(findings: Findings) -> str:
    page = render(findings)
    assert page is not None
    return page


@functools.cache
def made(name: str) -> str:
    return rendered(FINDINGS[name])


@pytest.fixture(params=list(FINDINGS))
def page(request: pytest.FixtureRequest) -> str:
    return made(request.param)


def test_every_picture_is_well_formed_named_and_described(page: str) -> None:
    pictures = re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)
    for text in pictures:
        picture = ET.fromstring(text.replace("<svg", '<svg xmlns:xlink="x"', 1))
        title, description = picture.find("title"), picture.find("desc")
        assert title is not None
        assert title.text
        assert description is not None
        assert description.text
        assert picture.get("role") == "img"
        assert picture.get("aria-labelledby") == title.get("id")
        assert "nan" not in text
    assert pictures


def test_the_page_asks_for_nothing_and_runs_nothing(page: str) -> None:
    tags = Reader(page).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    links = [value for _, a in tags for name in ("href", "xlink:href") if (value := a.get(name)) is not None]
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\((?!#)|@import", page)
    page.encode("utf-8")


def test_identifiers_are_unique_and_links_lead_somewhere(page: str) -> None:
    tags = Reader(page).tags
    identifiers = [a["id"] for _, a in tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    names = ("aria-labelledby", "aria-describedby", "href", "xlink:href")
    assert {value.removeprefix("#") for _, a in tags for n in names if (value := a.get(n))} <= set(identifiers)


def numbers(comparison: Comparison) -> list[str]:
    found = []
    for r in ordered(comparison).values():
        shares = (r.top1, r.top5, r.precision, r.recall, r.f1, r.in_doubt)
        ends = (r.top1_interval.low, r.top1_interval.high, r.top5_interval.low, r.top5_interval.high)
        found += [percent(share) for share in (*shares, *ends, *r.runs.values())]
        times = (r.time_ms.mean, r.time_ms.p50, r.time_ms.p95, r.time_interval.low, r.time_interval.high)
        energy = (r.energy_mj.mean, r.energy_mj.p50, r.energy_mj.p95) if r.energy_mj else ()
        found += [significant(value) for value in (*times, *energy)]
        for against in (r.vs_best_single, r.vs_oracle):
            found += [signed(against.top1_points), signed(against.top5_points), ratio(against.time_ratio)]
            found += [ratio(against.energy_ratio)] if against.energy_ratio is not None else []
    return found


def test_every_number_of_every_policy_and_bound_is_in_the_tables_of_its_criterion() -> None:
    for comparison in FINDINGS["full"].comparisons.values():
        section = made("full")[made("full").index(f'<section id="{comparison.criterion}"') :]
        tables = " ".join(re.findall(r"<table>.*?</table>", section[: section.index("</section>")], flags=re.DOTALL))
        written = set(re.findall(r"[+\u2212]?[0-9][0-9.]*", re.sub(r"<[^>]*>", " ", tables)))
        assert set(numbers(comparison)) <= written


def test_what_was_found_is_said() -> None:
    findings, text = FINDINGS["full"], Reader(made("full")).text
    for said in (findings.verdict, *findings.comparisons["top1"].sentences, "single:xl", "Installed"):
        assert said in text
    for part in (*findings.skipped, *findings.conditions.values(), *findings.identities.values()):
        assert part in text
    assert all(one.path in text for one in findings.differing)
    assert all(path in text and reason in text for path, reason in findings.left_out)


def test_agreement_and_noise_are_said_in_every_section_and_agreement_is_never_called_accuracy() -> None:
    text = Reader(made("agreement")).text
    sections = 6  # verdict, two criteria, mistakes, photographs, measured
    assert text.count("agrees with xl. The labels are") == sections
    assert text.count("The times are noisy: the processor was throttled.") == sections
    assert "Accuracy" not in text
    assert "Top-1 agreement with xl" in text
    assert "each policy agrees with xl" in text
    assert "Right means" not in Reader(made("full")).text
    for sentence in FINDINGS["agreement"].comparisons["top1"].sentences:
        text = text.replace(sentence, "")
    times = re.findall(r"(?:, |\u00a0)ms\b.{0,8}", text)
    assert len(times) > 10
    assert all(re.match(r"(?:, |\u00a0)ms \(noisy\)", time) for time in times)


def test_energy_is_shown_where_it_was_measured_and_else_unknown_with_its_reason() -> None:
    findings, text = FINDINGS["full"], Reader(made("full")).text
    for model, mean_mj in findings.energies_mj.items():
        assert f"{significant(mean_mj)} \u00b1 {significant(findings.energies_half_mj[model])}" in text
    assert f"Mean energy of {findings.winner}" in text
    unknown = Reader(made("agreement")).text
    assert unknown.count("Energy is unknown: no meter.") == 2
    assert "Mean energy, mJ" not in unknown


def test_one_policy_without_energy_does_not_hide_the_others() -> None:
    findings = FINDINGS["full"]
    top1 = findings.comparisons["top1"]
    chain = msgspec.structs.replace(top1.policies["chain"], energy_mj=None, energy_reason="the sensor vanished")
    partly = msgspec.structs.replace(top1, policies={**top1.policies, "chain": chain})
    text = Reader(rendered(msgspec.structs.replace(findings, comparisons={"top1": partly}))).text
    assert "unknown: the sensor vanished" in text
    assert significant(top1.policies["cascade"].energy_mj.mean) in text


def test_what_did_not_happen_is_said() -> None:
    quiet = msgspec.structs.replace(FINDINGS["full"], skipped={}, left_out=[], differing=[], conditions={})
    text = Reader(rendered(quiet)).text
    assert "No photograph was left out" in text
    assert "gave the same answers" in text


def test_hostile_strings_are_shown_as_they_are() -> None:
    text = Reader(made("hostile")).text
    shown = clean(sample.HOSTILE)
    assert shown in text
    assert f"photographs/{shown}/IMG_2040.jpg" in text


def test_names_of_any_script_and_dollars_are_drawn_as_they_are() -> None:
    drawn = lines("Time, ms", "%", {"$x^2$": [(1.0, 1.0)]}, (), {"<b>\u732b": (1.0, 1.0)})
    assert all(name in drawn.content for name in ("$x^2$", "&lt;b&gt;\u732b"))
    assert "#111111" not in drawn.content  # colours are the page's, light or dark


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_without_its_libraries_there_is_no_page(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for module in [name for name in sys.modules if name.startswith("jetsel.calibrate.report.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    assert render(FINDINGS["full"]) is None
