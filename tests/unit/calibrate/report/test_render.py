"""The whole page: the numbers that decide are on it, nothing of the owner's is markup, and what is missing is said."""

import base64
import functools
import html
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from jetsel.artefact.calibration import CalibrationImages
from jetsel.calibrate.judge.findings import ClassFinding, Findings, Guess, ImageSample, Result
from jetsel.calibrate.judge.results import MOST_CLASSES, MOST_IMAGES
from jetsel.calibrate.judge.words import clean
from jetsel.calibrate.report import render
from jetsel.calibrate.report.overview import trade_off
from jetsel.image import decode, jpeg
from tests.unit.calibrate.report import sample

FINDINGS = sample.PAGES
TABLE = "Points and time are compared with"


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


def rows_of(page: str) -> dict[str, list[str]]:
    """The first table: a row's header -> its cells."""
    table = page[page.index("<table>") : page.index("</table>")]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in table.split("<tr")[1:]]
    return {html.unescape(head.partition(" <span")[0]).strip(): [one.strip() for one in cells] for head, *cells in rows}


def test_the_first_table_has_what_is_in_use_each_policy_and_model_and_the_oracle() -> None:
    rows = rows_of(made("full"))
    names = ["cascade", "the cascade of 2026-11-01", "multiplexer", "chain", *(f"single:{m}" for m in sample.MODELS)]
    assert list(rows) == ["Policy", *names, "oracle"]
    assert rows["Policy"] == ["Accuracy, %", "Top-5, %", "Mean ms", "Mean mJ", "Points", "Time"]
    assert rows["cascade"] == ["64.1 \u00b1 1.2", "86.1", "1.50", "7.65", "+0.8", "\u221261\u00a0%"]
    assert "Mean mJ" not in rows_of(made("agreement"))["Policy"]


def test_numbers_for_experts_are_not_on_the_page() -> None:
    text = Reader(made("full")).text
    for word in ("Precision", "F1", "p95", "random", "calibration error", "onnxruntime", "0" * 64):
        assert word not in text


def test_the_chart_joins_the_operating_points_that_are_offered() -> None:
    findings = FINDINGS["full"]
    chart = trade_off(findings)
    points = chart.series["Operating points of cascade"]
    assert points == sorted((one.time_ms.mean, 100 * one.top1) for name, one in front("cascade").items())
    assert list(chart.joined) == ["Operating points of cascade", "Operating points of chain"]
    assert {"xl", "oracle", "cascade (in use now)", "in use before"} <= set(chart.labels)
    nothing = msgspec.structs.replace(findings, comparison=msgspec.structs.replace(findings.comparison, front={}))
    assert not trade_off(nothing).joined


def front(policy: str) -> dict[str, Result]:
    return {name: one for name, one in FINDINGS["full"].comparison.front.items() if name.startswith(policy)}


def test_agreement_and_noise_are_said_once_above_the_numbers_and_agreement_is_never_called_accuracy() -> None:
    text = Reader(made("agreement")).text
    assert text.count("Right means: agrees with xl.") == 1
    assert text.count("noisy") == 1
    assert text.index("noisy") < text.index(TABLE)
    assert "accuracy" not in text.lower()
    assert "Agreement, %" in text
    assert "Right means" not in Reader(made("full")).text


@pytest.mark.parametrize(
    ("change", "heading", "command"),
    [
        ({}, "Nothing was changed", "jetsel calibrate 'my cats' --force"),
        ({"is_allowed": False}, "Nothing was changed", "run this again: jetsel calibrate 'my cats'"),
        ({"current": "cascade"}, "Nothing was changed", "jetsel calibrate 'my cats' --policy NAME"),
        ({"installed": True}, "Installed: cascade", "jetsel calibration rollback --family starter"),
    ],
)
def test_the_verdict_ends_with_the_command_to_run(change: dict[str, Any], heading: str, command: str) -> None:
    if "current" in change:
        change = {"current": FINDINGS["full"].comparison.policies["cascade"]}
    findings = msgspec.structs.replace(FINDINGS["full"], **{"installed": False, **change})
    text = Reader(rendered(findings)).text
    verdict = text[text.index(heading) : text.index(TABLE)]
    assert command in verdict
    assert ("--force" in verdict) == (not change)


def test_the_first_card_is_what_is_in_use_and_a_candidate_is_called_one() -> None:
    for installed, first, second in (
        (False, "in use the cascade of 2026-11-01", "candidate cascade"),
        (True, "in use now cascade", "in use before the cascade of 2026-11-01"),
    ):
        page = rendered(msgspec.structs.replace(FINDINGS["full"], installed=installed))
        cards = [Reader(part).text for part in re.findall(r'<section class="card.*?</section>', page, re.DOTALL)]
        assert [first in cards[0], second in cards[1]] == [True, True]
        assert "Compared with the cascade of 2026-11-01: +1.4" in cards[not installed]


def test_what_was_left_out_is_counted_and_a_model_that_was_dropped_is_named() -> None:
    text = Reader(rendered(msgspec.structs.replace(FINDINGS["full"], dropped={"l": "m is as good"}))).text
    assert "15 files were left out" in text
    assert "label unknown to the family (12)" in text
    assert "l was recorded no further: m is as good." in text


def promises_part(findings: Findings) -> str:
    page = rendered(findings)
    return Reader(page[page.index('id="promises"') : page.index('id="differing"')]).text


def test_each_promised_level_is_shown_and_what_the_others_need() -> None:
    text = promises_part(FINDINGS["full"])
    assert "41.2 % of the images answered" in text
    assert "5 % 41.2 4.3 18.3 93.1 yes" in text
    assert "no: it needs about 13,000 images in all" in text
    assert "no: too many of the surest answers are wrong" in text


def test_the_page_says_if_no_unknown_images_were_tested_and_if_nothing_is_promised() -> None:
    promises, whole = sample.promises(), FINDINGS["full"]
    assert "--unknown FOLDER" not in promises_part(whole)
    text = promises_part(sample.with_facts(whole, images=CalibrationImages(count=8000)))
    assert "jetsel calibrate IMAGES --unknown FOLDER" in text
    assert "Unknown images refused" not in text
    nothing = {"cascade": msgspec.structs.replace(promises, kept=())}
    assert "Promises: none can be made" in promises_part(sample.with_facts(whole, promises=nothing))
    assert 'id="promises"' not in rendered(sample.with_facts(whole, promises={}))


def test_classes_stand_with_what_a_promise_refuses_of_them() -> None:
    page = made("full")
    text = Reader(page[page.index('id="classes"') :]).text
    assert "Refused, % (at most 5 % wrong)" in text
    assert "tabby cat 80 61.0 Egyptian cat (20) 91.3" in text


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
    gallery = page[page.index('id="differing"') : page.index('id="classes"')]
    assert Reader(gallery).text.count("xl tabby\u00a0\u2713 73%") == 2
    assert "1,000 images" in gallery


def test_an_image_that_is_gone_or_damaged_is_said_to_be_in_its_place(tmp_path: Path) -> None:
    some = pictured(tmp_path, 2)
    Path(some.images[1].path).unlink()
    Path(some.images[0].path).write_bytes(b"\xff\xd8\xff")
    page = rendered(msgspec.structs.replace(FINDINGS["full"], differing=some))
    gallery = Reader(page[page.index('id="differing"') : page.index('id="classes"')]).text
    assert gallery.count("no longer on disk") == 1
    assert gallery.count("can no longer be read") == 1


def test_a_page_of_many_large_images_and_long_names_stays_under_5_mb(tmp_path: Path) -> None:
    most = pictured(tmp_path, MOST_IMAGES, label='"' * 2000)
    classes = [ClassFinding('"' * 2000, 5, 0.1, {'"' * 2000: 4}) for _ in range(MOST_CLASSES)]
    findings = msgspec.structs.replace(
        FINDINGS["full"],
        differing=most,
        classes=classes,
        left_out=[('"' * 4000, "damaged")] * 200,
    )
    page = rendered(findings)
    assert page.count("data:image/jpeg") == MOST_IMAGES
    assert len(page.encode()) < 5_000_000


@pytest.mark.parametrize("library", ["matplotlib", "jinja2"])
def test_without_its_libraries_there_is_no_page(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for module in [name for name in sys.modules if name.startswith("jetsel.calibrate.report.")]:
        monkeypatch.delitem(sys.modules, module)
    for module in [name for name in sys.modules if name.partition(".")[0] == library]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, library, None)
    assert render(FINDINGS["full"], sample.LIMITS) is None
