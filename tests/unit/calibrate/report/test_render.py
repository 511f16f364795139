"""The whole page: every number is on it, nothing of the owner's is markup, and what is missing is said."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import pairwise

import msgspec
import pytest

from jetsel.calibrate.findings import Comparison, Differing
from jetsel.calibrate.report import render
from jetsel.calibrate.report.policies import ordered
from jetsel.calibrate.report.trade_off import undominated
from jetsel.calibrate.report.words import percent, ratio, signed, significant
from tests.unit.calibrate.report import sample


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


PAGES = {
    "full": sample.findings(),
    "agreement": sample.findings(labels_from="xl", noisy="the processor was throttled", energy=False),
    "empty": sample.empty(),
    "hostile": sample.hostile(),
}


@pytest.fixture(params=list(PAGES))
def page(request: pytest.FixtureRequest) -> str:
    return render(PAGES[request.param])


def test_every_picture_is_well_formed_and_described(page: str) -> None:
    pictures = [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL)]
    for picture in pictures:
        title, description = picture.find("title"), picture.find("desc")
        assert title is not None
        assert title.text
        assert description is not None
        assert description.text
        assert picture.get("aria-labelledby") == title.get("id")
        assert "nan" not in ET.tostring(picture, encoding="unicode")
    assert pictures or "No policy was compared" in page


def test_the_page_asks_for_nothing_and_runs_nothing(page: str) -> None:
    tags = Reader(page).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert all(value.startswith("#") for _, attributes in tags if (value := attributes.get("href")) is not None)
    assert not re.search(r"url\(|@import", page)
    page.encode("utf-8")


def test_identifiers_are_unique_and_links_lead_somewhere(page: str) -> None:
    tags = Reader(page).tags
    identifiers = [a["id"] for _, a in tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    wanted = {a["href"].removeprefix("#") for _, a in tags if a.get("href")}
    wanted |= {a[name] for _, a in tags for name in ("aria-labelledby", "aria-describedby") if a.get(name)}
    assert wanted <= set(identifiers)


def test_headings_descend_one_level_at_a_time(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Reader(page).tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def numbers(comparison: Comparison) -> list[str]:
    found = []
    for r in ordered(comparison).values():
        shares = (r.top1, r.top5, r.precision, r.recall, r.f1, r.in_doubt, r.agreement, r.missed, r.geometric_mean)
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
    findings = sample.findings()
    page = render(findings)
    for comparison in findings.comparisons.values():
        section = page[page.index(f'<section id="{comparison.criterion}"') :]
        tables = " ".join(re.findall(r"<table>.*?</table>", section[: section.index("</section>")], flags=re.DOTALL))
        written = set(re.findall(r"[+\u2212]?[0-9][0-9.]*", re.sub(r"<[^>]*>", " ", tables)))
        assert set(numbers(comparison)) <= written


def test_what_was_said_is_said() -> None:
    findings = sample.findings()
    text = Reader(render(findings)).text
    for said in (findings.verdict, *findings.comparisons["top1"].sentences, "single:xl", "Installed"):
        assert said in text
    for part in (*findings.skipped, *findings.conditions.values(), *findings.models_sha256.values()):
        assert part in text
    assert all(one.path in text for one in findings.differing)


def test_agreement_with_a_model_is_said_in_every_section_and_never_called_accuracy() -> None:
    text = Reader(render(PAGES["agreement"])).text
    sections = 6  # verdict, two criteria, features, photographs, measured
    assert text.count("Right means: agrees with xl.") == sections
    assert text.count("The times are noisy: the processor was throttled.") == sections
    assert "Accuracy" not in text
    assert "Top-1 agreement with xl" in text
    assert "Right means" not in Reader(render(PAGES["full"])).text


def test_noise_is_said_beside_every_time() -> None:
    noisy = Reader(render(PAGES["agreement"])).text
    for sentence in PAGES["agreement"].comparisons["top1"].sentences:
        noisy = noisy.replace(sentence, "")
    times = re.findall(r"(?:, |\u00a0)ms\b.{0,8}", noisy)
    assert len(times) > 50
    assert all(re.match(r"(?:, |\u00a0)ms \(noisy\)", time) for time in times)


def test_energy_that_nobody_measured_is_unknown_with_its_reason() -> None:
    text = Reader(render(PAGES["agreement"])).text
    assert text.count("Energy is unknown: no meter.") == 2
    assert "Mean energy, mJ" not in text


def test_energy_that_was_measured_is_beside_the_times_with_its_bounds() -> None:
    findings = sample.findings()
    text = Reader(render(findings)).text
    for model, mean_mj in findings.energies_mj.items():
        assert f"{significant(mean_mj)} \u00b1 {significant(findings.energies_half_mj[model])}" in text
    winner = findings.comparisons["top1"].policies[findings.winner]
    assert winner.energy_mj is not None
    assert f"{significant(winner.energy_mj.mean)}\u00a0mJ" in text
    assert f"Mean energy of {findings.winner}" in text
    assert "Energy above idle power, mJ" in text
    assert "Energy above idle power, mJ" not in Reader(render(PAGES["agreement"])).text


def test_one_policy_without_energy_does_not_hide_the_others() -> None:
    findings = sample.findings()
    top1 = findings.comparisons["top1"]
    chain = msgspec.structs.replace(top1.policies["chain"], energy_mj=None, energy_reason="the sensor vanished")
    partly = msgspec.structs.replace(top1, policies={**top1.policies, "chain": chain})
    text = Reader(render(msgspec.structs.replace(findings, comparisons={"top1": partly}))).text
    assert "unknown: the sensor vanished" in text
    assert "Unknown: chain." in text
    assert significant(top1.policies["cascade"].energy_mj.mean) in text


def test_what_is_missing_is_said_rather_than_drawn() -> None:
    text = Reader(render(PAGES["empty"])).text
    for said in (
        "No policy was compared under this criterion.",
        "Algorithm 1 was not run.",
        "No model's confidence was calibrated.",
        "No chosen feature is known to raise the accuracy.",
        "No photograph was left out.",
        "cascade was not compared under this criterion.",
        "no other was tried",
    ):
        assert said in text
    nothing = msgspec.structs.replace(PAGES["empty"], comparisons={})
    assert "No policy was compared." in Reader(render(nothing)).text


def test_hostile_strings_are_shown_as_they_are() -> None:
    text = Reader(render(PAGES["hostile"])).text
    shown = sample.HOSTILE.replace("\udc80", "\ufffd").replace("\x00", "\ufffd")
    assert shown in text
    assert f"photographs/{shown}/IMG_2040.jpg" in text


def test_an_answer_that_a_policy_did_not_give_is_none() -> None:
    odd = [Differing("a.jpg", "cat", {"chain": "cat"}), Differing("b.jpg", "dog", {"cascade": "cat"})]
    page = render(msgspec.structs.replace(sample.findings(), differing=odd))
    row = re.search(r"<tr><th scope=\"row\"><span class=\"path\">b.jpg</span></th>(.*?)</tr>", page)
    assert row is not None
    assert re.findall(r"<td>([^<]*)", row.group(1)) == ["dog", "none", "cat"]


def test_only_what_nothing_beats_is_on_the_front() -> None:
    points = {"slow": (4.0, 60.0), "good": (2.0, 63.0), "fast": (1.0, 50.0), "twin": (2.0, 63.0), "worse": (2.0, 62.0)}
    assert undominated(points) == ["fast", "good", "twin"]


def test_what_was_left_out_is_listed_with_its_reason() -> None:
    page = render(sample.findings())
    assert "attic/1.jpg" in page
    assert "unknown label: attic" in page
