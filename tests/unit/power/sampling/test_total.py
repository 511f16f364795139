"""The total: added once, timed, and found again when its rails vanish."""

import time
from pathlib import Path

from jetsel.config import Power
from jetsel.power.sampling.messages import Word
from jetsel.power.sampling.total import PATIENCE, Total
from tests.unit.power.trees import copied


def said(root: Path, **power: object) -> tuple[Total, list[Word]]:
    words: list[Word] = []
    return Total(Power(sysfs=str(root), **power), words.append), words


def power_file(root: Path) -> Path:
    """The file of VDD_IN, where a JetPack 4 tree has it."""
    label = next(path for path in root.rglob("rail_name_*") if path.read_text().strip() == "VDD_IN")
    return label.with_name(f"in_power{label.name[-1]}_input")


def read_until(total: Total, wanted: bool) -> int:
    """Read as often as the pauses allow until there is a reading, or there is none; return how often."""
    for tries in range(1, 30):
        time.sleep(max(total.retry_ns - time.monotonic_ns(), 0) / 1e9)
        if (total.read_uw() is not None) == wanted:
            return tries
    raise AssertionError("it never came to that")


def test_the_rails_of_the_board_are_added(tmp_path: Path):
    root = copied("jetson-tx2", tmp_path)
    power_file(root).write_text("5123\n")
    total, words = said(root)
    assert total.read_uw() == 5_123_000
    assert [word.total_of for word in words] == [["VDD_IN"]]
    assert words[0].reason is None
    assert words[0].resolution_w is not None
    assert total.begin_ns <= total.mid_ns <= total.end_ns


def test_the_rails_of_a_sum_are_each_counted_once(tmp_path: Path):
    root = copied("jetson-tx2", tmp_path)
    total, words = said(root, total=["VDD_SYS_GPU", "VDD_SYS_CPU"])
    parts = [said(root, total=[name])[0].read_uw() for name in ("VDD_SYS_GPU", "VDD_SYS_CPU")]
    assert total.read_uw() == sum(part for part in parts if part is not None)
    assert sorted(words[0].total_of) == ["VDD_SYS_CPU", "VDD_SYS_GPU"]


def test_a_change_is_noticed_and_a_repeated_value_is_none(tmp_path: Path):
    root = copied("jetson-tx2", tmp_path)
    total, _ = said(root)
    total.read_uw()
    total.read_uw()
    assert total.changes == []
    power_file(root).write_text("4321\n")
    total.read_uw()
    assert total.changes == [0]


def test_one_failed_reading_is_tried_again_without_a_word(tmp_path: Path):
    root = copied("jetson-tx2", tmp_path)
    total, words = said(root)
    file = power_file(root)
    file.write_text("")
    assert total.read_uw() is None
    assert total.read_uw() is None  # before the pause is over: not even tried
    file.write_text("6000\n")
    assert read_until(total, True) == 1
    assert len(words) == 1


def test_a_rail_that_keeps_failing_is_told_of_once_and_again_when_it_is_back(tmp_path: Path):
    root = copied("jetson-tx2", tmp_path)
    total, words = said(root)
    file = power_file(root)
    file.write_text("")
    for _ in range(PATIENCE + 2):
        assert read_until(total, False) == 1
    file.write_text("6000\n")
    read_until(total, True)
    assert [word.reason is None for word in words] == [True, False, True]
    assert words[1].total_of == ["VDD_IN"]
    assert "VDD_IN" in (words[1].reason or "")


def test_a_driver_that_was_bound_anew_under_another_name_is_found(tmp_path: Path):
    root = copied("jetson-orin-nano", tmp_path)
    total, words = said(root)
    before = total.read_uw()
    folder = next(path.parent for path in root.rglob("in1_input") if "hwmon" in path.parent.name)
    texts = {file.name: file.read_text() for file in folder.glob("*_input")}
    for name in texts:
        (folder / name).write_text("")  # what was open reads nothing more
    read_until(total, False)
    anew = folder.rename(folder.with_name("hwmon77"))
    for name, text in texts.items():
        (anew / name).unlink()
        (anew / name).write_text(text)
    read_until(total, True)
    assert total.read_uw() == before
    assert words[-1].reason is None


def test_no_sensor_is_a_reason_and_a_pause(tmp_path: Path):
    (tmp_path / "class").mkdir()
    total, words = said(tmp_path)
    assert total.read_uw() is None
    assert words[0].reason
    assert words[0].total_of == []
    assert total.retry_ns > time.monotonic_ns() - 1_000_000_000
