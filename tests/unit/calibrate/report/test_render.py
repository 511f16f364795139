"""The whole page: every number is on it, nothing of the owner's is markup, and what is missing is said."""

from __future__ import annotations

import base64
import functools
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.calibrate.judge.findings import ClassFinding, Comparison, Findings, Guess, ImageSample, Mistakes
from jetsel.calibrate.judge.results import MOST_CLASSES, MOST_IMAGES
from jetsel.calibrate.judge.words import change, clean, percent, signed, significant
from jetsel.calibrate.report import render
from jetsel.calibrate.report.policies import ordered
from jetsel.calibrate.report.promises import trade_off
from jetsel.image import decode, jpeg
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
    page = render(findings, sample.LIMITS)
    assert page is not None
    return page


@functools.cache
def made(name: str) -> str:
    return rendered(FINDINGS[name])


@pytest.fixture(params=list(FINDINGS))
def page(request: pytest.FixtureRequest) -> str:
    return made(request.param)


def test_the_page_asks_for_nothing_and_runs_nothing(page: str) -> None:
    tags = Reader(page).tags
    assert not {tag for tag, _ in tags} & {"script", "link", "iframe", "object", "embed", "form", "base"}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    links = [value for _, a in tags for name in ("href", "xlink:href") if (value := a.get(name)) is not None]
    assert all(link.startswith("#") for link in links)
    assert not re.search(r"url\((?!#)|@import", page)
    page.encode("utf-8")


def numbers(comparison: Comparison) -> list[str]:
    found = []
    for r in ordered(comparison).values():
        shares = (r.top1, r.top5, r.precision, r.recall, r.f1, r.in_doubt)
        ends = (r.top1_interval.low, r.top1_interval.high, r.top5_interval.low, r.top5_interval.high)
        found += [percent(share) for share in (*shares, *ends, *r.runs.values())]
        times = (r.time_ms.mean, r.time_ms.p50, r.time_ms.p95, r.time_interval.low, r.time_interval.high)
        energy = (r.energy_mj.mean, r.energy_mj.p50, r.energy_mj.p95) if r.energy_mj else ()
        found += [significant(value) for value in (*times, *energy)]
        against = r.vs_best_single
        found += [signed(against.points), signed(r.points_over_coin)]
        found += [change(ratio).split()[0] for ratio in (against.time_ratio, against.energy_ratio)]
    return found


def test_every_number_of_every_policy_and_bound_is_in_the_tables() -> None:
    section = made("full")[made("full").index('<details id="numbers"') :]
    tables = " ".join(re.findall(r"<table>.*?</table>", section[: section.index("</details>")], flags=re.DOTALL))
    written = set(re.findall(r"[+\u2212]?[0-9][0-9.]*", re.sub(r"<[^>]*>", " ", tables)))
    assert set(numbers(FINDINGS["full"].comparison)) <= written


def test_agreement_and_noise_are_said_once_above_the_numbers_and_agreement_is_never_called_accuracy() -> None:
    text = Reader(made("agreement")).text
    assert text.count("Right means: agrees with xl.") == 1
    assert text.count("noisy") == 1
    assert text.index("noisy") < text.index("Policies, the fastest first")
    assert "accuracy" not in text.lower()
    assert "Top-1 agreement with xl" in text
    assert "each policy agrees with xl" in text
    assert "Right means" not in Reader(made("full")).text


def test_other_warnings_stand_above_the_first_table() -> None:
    learned = "The heads learned from 800 of these images."
    page = rendered(msgspec.structs.replace(FINDINGS["full"], warnings=[learned]))
    assert page.index(learned) < page.index("<table>")


@pytest.mark.parametrize(
    ("change", "heading", "command"),
    [
        ({}, "Nothing was changed", "jetsel calibrate 'my cats' --force"),
        ({"is_allowed": False}, "Nothing was changed", "run this again: jetsel calibrate 'my cats'"),
        ({"winner": "the cascade of 2026-11-01"}, "Nothing was changed", "jetsel calibrate 'my cats' --policy NAME"),
        ({"installed": True}, "Installed: cascade", "jetsel calibration rollback --family starter"),
    ],
)
def test_the_verdict_ends_with_the_command_to_run(change: dict[str, Any], heading: str, command: str) -> None:
    findings = msgspec.structs.replace(FINDINGS["full"], **{"installed": False, **change})
    text = Reader(rendered(findings)).text
    verdict = text[text.index(heading) : text.index("Policies, the fastest first")]
    assert command in verdict
    assert ("--force" in verdict) == (not change)


def test_the_first_card_is_what_is_in_use_and_a_candidate_is_called_one() -> None:
    for installed, first, second in (
        (False, "in use the cascade of 2026-11-01", "candidate, not installed cascade"),
        (True, "in use now cascade", "in use before the cascade of 2026-11-01"),
    ):
        page = rendered(msgspec.structs.replace(FINDINGS["full"], installed=installed))
        cards = [Reader(part).text for part in re.findall(r'<section class="card.*?</section>', page, re.DOTALL)]
        assert [first in cards[0], second in cards[1]] == [True, True]
        assert "Compared with the cascade of 2026-11-01: +1.4" in cards[not installed]


def test_energy_is_shown_where_it_was_measured_and_else_unknown_with_its_reason() -> None:
    findings, text = FINDINGS["full"], Reader(made("full")).text
    for model, mean_mj in findings.energies_mj.items():
        assert f"{significant(mean_mj)} \u00b1 {significant(findings.energies_half_mj[model])}" in text
    assert "Mean energy 7.65" in text  # on the card of what is in use
    unknown = Reader(made("agreement")).text
    assert unknown.count("Energy is unknown: no meter.") == 1
    assert "Mean energy, mJ" not in unknown


def promises_part(findings: Findings) -> str:
    page = rendered(findings)
    return Reader(page[page.index('id="promises"') : page.index('id="hopeless"')]).text


def test_each_promised_level_is_shown_and_what_the_others_need() -> None:
    text = promises_part(FINDINGS["full"])
    assert "41.2 % of the images answered" in text
    assert "5 % 41.2 4.3 18.3 93.1 yes" in text
    assert "10 % 52.1 8.9 0.0 87.2 yes" in text
    assert "no: it needs about 13,000 images in all" in text
    assert "no: too many of the surest answers are wrong" in text
    assert "tabby cat 80 91.3" in text
    assert "lynx" not in text, "nothing of it is refused"


def test_the_page_says_if_no_unknown_images_were_tested_and_if_nothing_is_promised() -> None:
    promises = sample.promises()
    assert "--unknown FOLDER" not in promises_part(FINDINGS["full"])
    untested = msgspec.structs.replace(promises, unknown_images=0)
    text = promises_part(msgspec.structs.replace(FINDINGS["full"], promises=untested))
    assert "jetsel calibrate IMAGES --unknown FOLDER" in text
    assert "Unknown images refused" not in text
    none = {name: msgspec.structs.replace(one, kept=()) for name, one in promises.by_policy.items()}
    nothing = msgspec.structs.replace(promises, by_policy=none, level=None)
    text = promises_part(msgspec.structs.replace(FINDINGS["full"], promises=nothing))
    assert "Promises: none can be made" in text
    assert "Classes that are refused most" not in text
    assert 'id="promises"' not in rendered(msgspec.structs.replace(FINDINGS["full"], promises=None))


def test_the_curve_has_the_most_answers_for_each_share_of_wrong_ones() -> None:
    points = [(0.25, 0.0), (0.5, 0.02), (0.75, 0.04), (1.0, 0.03)]
    found = trade_off(msgspec.structs.replace(sample.promises(), curves={"s": points}))
    assert found is not None
    assert found.numbers.groups[""] == [["s", "0", "25.0"], ["s", "2.00", "50.0"], ["s", "3.00", "100"]]
    assert trade_off(msgspec.structs.replace(sample.promises(), curves={"s": points[:1]})) is None


def test_hostile_strings_are_shown_as_they_are() -> None:
    text = Reader(made("hostile")).text
    shown = clean(sample.HOSTILE)
    assert shown in text
    assert "IMG_2040.jpg" in text


def pictured(folder: Path, count: int, label: str = "tabby") -> ImageSample:
    """A sample of so many images in this folder, of 3 megapixels, of which small copies are noise as well."""
    noise = np.random.default_rng(1).integers(0, 256, (108, 144, 3), np.uint8).repeat(14, 0).repeat(14, 1)
    found, quotes = [], '"' * 200
    for number, one in enumerate(sample.images("x", [label, "lynx", label], count)):
        path = folder / f"{number}{quotes}.jpg"
        if number == 0:
            path.write_bytes(jpeg(noise))
        else:
            path.hardlink_to(folder / f"0{quotes}.jpg")
        guesses = {model: Guess(label, 0.734) for model in sample.MODELS}
        found.append(msgspec.structs.replace(one, path=str(path), label=label, guesses=guesses))
    return ImageSample(1000, found)


def test_images_are_shown_small_with_what_each_model_answered(tmp_path: Path) -> None:
    findings = msgspec.structs.replace(FINDINGS["full"], differing=pictured(tmp_path, 2))
    page = rendered(findings)
    shown = [attributes for tag, attributes in Reader(page).tags if tag == "img"]
    assert len(shown) == 2
    for attributes in shown:
        kind, _, data = (attributes["src"] or "").partition(",")
        assert kind == "data:image/jpeg;base64"
        assert decode(base64.b64decode(data), sample.LIMITS, 1000).bgr.shape == (108, 144, 3)
        assert (attributes["alt"] or "").startswith("tabby: ")
    gallery = page[page.index('id="differing"') : page.index('id="mistakes"')]
    assert Reader(gallery).text.count("xl tabby\u00a0\u2713 73%") == 2
    assert "310 images" not in gallery
    assert "1,000 images" in gallery


def test_an_image_that_is_gone_or_damaged_is_said_to_be_in_its_place(tmp_path: Path) -> None:
    some = pictured(tmp_path, 2)
    Path(some.images[1].path).unlink()
    Path(some.images[0].path).write_bytes(b"\xff\xd8\xff")
    page = rendered(msgspec.structs.replace(FINDINGS["full"], differing=some))
    gallery = Reader(page[page.index('id="differing"') : page.index('id="mistakes"')]).text
    assert gallery.count("no longer on disk") == 1
    assert gallery.count("can no longer be read") == 1


def test_a_page_of_many_large_images_and_long_names_stays_under_5_mb(tmp_path: Path) -> None:
    most = pictured(tmp_path, MOST_IMAGES, label='"' * 2000)
    classes = [ClassFinding('"' * 2000, 5, 0.1, {'"' * 2000: 4}) for _ in range(MOST_CLASSES)]
    findings = msgspec.structs.replace(
        FINDINGS["full"],
        differing=most,
        mistakes=Mistakes("cascade", classes, most),
        left_out=[('"' * 4000, "damaged")] * 200,
    )
    page = rendered(findings)
    assert page.count("data:image/jpeg") == 2 * MOST_IMAGES
    assert len(page.encode()) < 5_000_000


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_without_its_libraries_there_is_no_page(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for module in [name for name in sys.modules if name.startswith("jetsel.calibrate.report.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    assert render(FINDINGS["full"], sample.LIMITS) is None
