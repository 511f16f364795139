"""The gateway's page in a real browser, beside a real daemon: what it shows, who can use it, what it says of faults."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

import jetsel
from tests.browser.conftest import DESK_PX, PHONE_PX, Browser
from tests.system.daemons import Daemon, drawn, encoded, launch, serving, wait_until_ready
from tests.system.gateway.gateways import Gateway, opened
from tests.system.promises import ANSWERED, REFUSED, family_with_promises
from tests.waiting import until

PICTURES = [encoded(drawn(seed)) for seed in range(6)]


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with serving(tmp_path) as started:
        yield started


@pytest.fixture
def gateway(daemon: Daemon) -> Iterator[Gateway]:
    with opened(daemon.endpoint, "--thumbnails", "5") as gateway:
        yield gateway


def text(browser: Browser, place: str) -> str:
    return browser.driver.find_element(By.ID, place).text


def drop(browser: Browser, path: Path) -> None:
    path.write_bytes(PICTURES[0])
    browser.driver.find_element(By.ID, "file").send_keys(str(path))


@pytest.mark.parametrize(("width_px", "scheme"), [(PHONE_PX, "light"), (DESK_PX, "dark")])
def test_it_says_what_a_photograph_shows_and_why_that_model_and_fits_is_legible_and_asks_nobody_else(
    browser: Browser, daemon: Daemon, gateway: Gateway, tmp_path: Path, width_px: int, scheme: str
) -> None:
    with jetsel.Client(daemon.endpoint) as client:
        expected, *_ = [client.classify(picture) for picture in PICTURES]
    browser.show(f"{gateway.url}/", width_px, scheme)
    until(lambda: text(browser, "state").startswith("ready: 7 of 7 models in 1 family"))
    drop(browser, tmp_path / "photograph.jpg")
    until(lambda: f"Why {expected.model}?" in text(browser, "answer"))
    said = text(browser, "answer")
    assert said.startswith(expected.label)
    assert f"Policy: {expected.policy}." in said
    assert all(f"{ran.model} ran ({ran.because})" in said for ran in expected.ran)
    assert expected.because in said
    assert "Where the" in said
    assert "None: this policy" not in said, "it reads features"
    Select(browser.driver.find_element(By.ID, "policy")).select_by_value("cascade")
    drop(browser, tmp_path / "another.jpg")
    until(lambda: "Policy: cascade." in text(browser, "answer"))
    assert "None: this policy uses the models' answers." in text(browser, "answer")
    rows = "#recent tr"
    until(lambda: len(browser.driver.find_elements(By.CSS_SELECTOR, rows)) == len(PICTURES) + 2)
    until(lambda: len(browser.driver.find_elements(By.CSS_SELECTOR, "#recent img")) == 2)
    assert "of 8 answers of starter" in text(browser, "shares")
    line = "document.querySelector('#rate path.js-line')?.getAttribute('d')"
    until(lambda: "L" in (browser.driver.execute_script(f"return {line}") or ""))  # it goes on from point to point
    assert browser.width_px() <= width_px
    assert browser.check("faint") == []
    assert browser.check("spilling") == []
    charts = browser.driver.find_elements(By.CSS_SELECTOR, ".chart.js-plotly-plot")
    assert len(charts) >= 3
    assert all(chart.accessible_name for chart in charts)
    assert all(address.startswith((gateway.url, "blob:", "data:")) for address in browser.requests())
    assert browser.driver.get_log("browser") == []


def test_the_photograph_s_place_and_the_choices_are_reached_by_keyboard_and_have_names(
    browser: Browser, gateway: Gateway
) -> None:
    browser.show(f"{gateway.url}/", DESK_PX, "light")
    until(lambda: text(browser, "state").startswith("ready"))
    names = []
    for _ in range(4):
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        names.append(browser.driver.switch_to.active_element.accessible_name)
    assert names == ["Drop an image here, or choose one", "Family", "Policy", "Wrong answers"]
    assert browser.check("headless") == []


def test_a_level_can_be_asked_for_and_an_answer_in_doubt_is_shown_as_unknown_with_its_reason(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        serving(tmp_path, family_with_promises(tmp_path / "cats", wrong_at_most=REFUSED)) as daemon,
        opened(daemon.endpoint) as beside,
    ):
        browser.show(f"{beside.url}/", PHONE_PX, "light")
        until(lambda: "at most 5 % wrong: 88 % answered" in text(browser, "promises"))
        choice = Select(browser.driver.find_element(By.ID, "level"))
        levels = [option.text for option in choice.options]
        assert levels == ["the default: at most 2 %", "no promise", "at most 2 %", "at most 5 %"]

        def asked(level: str) -> str:
            choice.select_by_value(level)
            drop(browser, tmp_path / f"image{level}.jpg")
            until(lambda: "Why cat?" in text(browser, "answer"))
            said = text(browser, "answer")
            browser.driver.execute_script("document.getElementById('answer').replaceChildren()")
            return said

        for level in ("", str(REFUSED)):
            said = asked(level)
            assert said.startswith("Unknown\nMost likely cats ")
            assert "cat is not sure enough" in said
        assert "Promised: at most 5 %" in asked(str(ANSWERED))
        assert "Promised" not in asked("1")
        assert browser.width_px() <= PHONE_PX
        assert browser.check("faint") == []


def test_the_shares_of_the_operating_points_are_drawn_and_five_minutes_at_the_cheapest_give_notice(
    browser: Browser, tmp_path: Path
) -> None:
    with serving(tmp_path, "[policy]\nlatency_target_ms = 60000\n") as daemon, opened(daemon.endpoint) as beside:
        browser.show(f"{beside.url}/", PHONE_PX, "light")
        until(lambda: text(browser, "state").startswith("ready"))
        with jetsel.Client(daemon.endpoint) as client:
            used = [client.classify(picture).operating_point for picture in PICTURES]
        chart = browser.driver.find_element(By.ID, "points-starter")
        until(lambda: f"{used[0]} 100 %" in chart.accessible_name)
        assert f"last: {used[0]}" in text(browser, "points-words-starter")
        assert re.search(rf"{used[0]}: [\d.]+ % right", text(browser, "points-legend-starter"))
        notice = browser.driver.find_element(By.ID, "cheapest")
        assert not notice.is_displayed()
        since = "before.families[0].front.cheapest_s = 301; showCheapest(before)"
        said = browser.driver.execute_script(f"{since}; return document.getElementById('cheapest').innerText")
        assert "starter has used its cheapest operating point" in said
        assert "for 5 min" in said
        assert browser.width_px() <= PHONE_PX
        assert browser.check("faint") == []


def test_a_daemon_that_goes_is_told_within_seconds_and_the_page_goes_on_when_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    with ExitStack() as stack:

        def begin() -> Daemon:
            started = launch(tmp_path)
            stack.callback(started.process.wait)
            stack.callback(started.process.kill)
            return started

        daemon = begin()
        wait_until_ready(daemon)
        gateway = stack.enter_context(opened(daemon.endpoint))
        browser.show(f"{gateway.url}/", DESK_PX, "light")
        until(lambda: text(browser, "state").startswith("ready"))
        daemon.process.kill()
        daemon.process.wait()
        until(lambda: "No answer from the daemon" in text(browser, "away"))
        drop(browser, tmp_path / "photograph.jpg")
        until(lambda: "No answer: " in text(browser, "answer"))
        begin()
        until(lambda: text(browser, "state").startswith("ready"))
        assert text(browser, "away") == ""
        gateway.process.kill()
        gateway.process.wait()
        until(lambda: "No answer from the gateway: start it with jetsel gateway" in text(browser, "away"))
