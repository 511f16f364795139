"""The page that `jetsel top` shows: what stands on it, and that it fits its window."""

from __future__ import annotations

import re
import time
from datetime import datetime

import pytest
from msgspec.structs import replace
from rich.console import Console

from jetsel import wire
from jetsel.cli.top.lines import BAR, bar
from jetsel.cli.top.page import page
from jetsel.cli.top.rates import rates
from jetsel.cli.top.watching import Seen
from tests.unit.cli.test_power_status import POWER
from tests.unit.client import peer

QUICK = wire.Percentiles(0.1, 0.2, 0.3)
STAGES = wire.StageTimes(1234, 61.0, QUICK, QUICK, None, QUICK, QUICK, wire.Percentiles(1.5, 12.25, 123.4), QUICK)
HOST = wire.HostStatus("tensorrt", "restarting", "it hung; it is being started again", None, 2, "it hung", 3.0)
PLAIN = peer.status(peer.Seen(wire.Status(1, "x"), None))
BUSY = replace(
    PLAIN,
    queue=wire.QueueStatus(30, 2, 2, 1_500_000, 7_000_000, 128, 64_000_000, 100_000_000),
    in_queue=32,
    stages_ms=STAGES,
    hosts=[HOST],
    reloads={"ok": 3, "reload-failed": 1},
    last_reload=wire.ReloadStatus(65.0, 0.5, [], "the running configuration stays: no such model"),
    power=POWER,
)


def seen(reply: wire.StatusReply, gone: str | None = None) -> Seen:
    return Seen(1, reply, rates(None, reply), datetime(2026, 11, 21, 12, 0, 1), time.monotonic(), gone)


def shown(what: Seen, width: int = 80, height: int | None = None) -> list[str]:
    console = Console(width=width, height=100, highlight=False)
    with console.capture() as captured:
        console.print(page(what, 2.0, width, height))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_everything_that_is_known_stands_on_a_page_without_an_end() -> None:
    lines = shown(seen(BUSY), width=120)
    assert lines[0] == "jetsel 9.9.9 ready, process 4711, up 1 d 2 h, 121 MB; 12:00:01, every 2 s"
    assert "so far    7 ok, 1 busy; 3 replies lost" in lines
    assert f"queue     [{'#' * 6}{'.' * 18}] 32 of 128: 30 waiting, 2 in work, 2 workers" in lines
    assert "ms   queue  decode  features  choice  waiting  inference  total   (1,234 in 1 min 1 s)" in lines
    assert "p99   0.30    0.30         -    0.30     0.30       0.30    123" in lines
    assert "big is unavailable: out of memory" in lines
    assert "engine host for tensorrt: restarting, 2 restarts: it hung; it is being started again" in lines
    assert "power: 7.26 W now, 6.50 W in the mean, 3.10 W idle (VDD_IN); power mode 0 MAXN" in lines
    assert any(line.startswith("reloads: 3 ok, 1 reload-failed; the last, 1 min 5 s ago, refused: ") for line in lines)
    assert "left out: /models/bad.json: no JSON" in lines
    (cascade,) = [line.split() for line in lines if line.startswith("cascade ")]
    assert cascade == ["cascade", "18", "1.5", "kJ", "83333", "4.4", "-20.4", "mJ"]
    (m,) = [line.split() for line in lines if line.startswith("m ")]
    assert m[:4] == ["m", "ready", "onnxruntime", "7"]
    assert m[-1] == "62.5", "what one run takes above idle"


@pytest.mark.parametrize("reply", [PLAIN, BUSY], ids=["plain", "busy"])
@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (40, 24)])
def test_a_page_fits_its_window(reply: wire.StatusReply, width: int, height: int) -> None:
    lines = shown(seen(reply), width, height)
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= height
    assert lines[0].startswith("jetsel 9.9.9")
    assert any(line.startswith("model ") for line in lines)


def test_many_models_are_cut_to_what_the_window_has_room_for() -> None:
    family = PLAIN.families[0]
    many = replace(PLAIN, families=[replace(family, models=[family.models[0]] * 40)])
    lines = shown(seen(many), 80, 24)
    assert len(lines) == 24
    (more,) = [line for line in lines if line.startswith("and ")]
    assert more == f"and {40 - sum(line.startswith('m ') for line in lines)} more: see jetsel status"


@pytest.mark.parametrize("height", [4, 10, 12])
def test_lines_that_a_low_window_has_no_room_for_are_counted(height: int) -> None:
    lines = shown(seen(BUSY), 80, height)
    assert len(lines) == height
    counted = re.fullmatch(r"\.\.\. (\d+) more lines: a higher window shows them", lines[-1])
    assert counted is not None
    assert shown(seen(BUSY), 80, height - 1 + int(counted[1]))[: height - 1] == lines[:-1]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_repair_is_whole_however_narrow_the_window(width: int) -> None:
    gone = "the daemon that made /run/jetsel/jetsel.sock is gone: start another: sudo systemctl start jetsel"
    lines = shown(seen(BUSY, gone), width, 60)
    assert all(len(line) <= width for line in lines)
    said = " ".join(" ".join(lines).split())
    assert f"no answer since 12:00:01, for 0 s: {gone}" in said
    assert "refused: the running configuration stays: no such model" in said


def test_in_a_low_window_what_is_most_urgent_stands_first() -> None:
    lines = shown(seen(BUSY), 80, 10)
    assert [line.split()[0] for line in lines[:6]] == ["jetsel", "requests", "so", "queue", "bytes", "pixels"]


def test_models_of_several_families_are_called_by_both_names() -> None:
    family = PLAIN.families[0]
    lines = shown(seen(replace(PLAIN, families=[family, replace(family, name="g")])))
    assert {line.split()[0] for line in lines if "ready" in line.split()[1:2]} == {"f/m", "g/m"}


def test_a_daemon_that_is_gone_is_told_of_above_what_was_seen_last() -> None:
    lines = shown(seen(BUSY, gone="nobody listens"))
    assert lines[1] == "no answer since 12:00:01, for 0 s: nobody listens"
    assert "so far    7 ok, 1 busy; 3 replies lost" in lines


def test_an_answer_that_is_late_is_told_of_before_it_is_given_up() -> None:
    late = seen(PLAIN)
    lines = shown(Seen(late.number, late.reply, late.rates, late.at, late.at_s - 5.0))
    assert lines[1] == "no answer since 12:00:01, for 5 s"


@pytest.mark.parametrize(
    ("value", "most", "filled"),
    [(0, 128, 0), (1, 128, 1), (64, 128, BAR // 2), (128, 128, BAR), (999, 128, BAR), (0, 0, 0)],
)
def test_a_bar_is_as_full_as_its_limit(value: float, most: float, filled: int) -> None:
    assert bar(value, most) == f"[{'#' * filled}{'.' * (BAR - filled)}]"
