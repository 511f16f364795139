"""What features take, as a share of what was recorded."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from jetsel import image
from jetsel.base.errors import CalibrationError
from jetsel.calibrate.fit.features import FeatureClock, decode_sample
from jetsel.features import NAMES, WORKING_PX

LIMITS = image.Limits(max_bytes=100_000, max_pixels=1_000_000)


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """A red photograph, one that is gone, one that is none, and one over the limit."""
    red = np.zeros((40, 60, 3), np.uint8)
    red[..., 2] = 200
    cv2.imwrite(str(tmp_path / "red.png"), red)
    (tmp_path / "none.jpg").write_bytes(b"no photograph")
    (tmp_path / "large.jpg").write_bytes(bytes(200_000))
    return [str(tmp_path / name) for name in ("red.png", "gone.jpg", "none.jpg", "large.jpg")]


def test_no_features_take_no_time_and_some_take_a_part_of_what_was_recorded(paths: list[str]) -> None:
    clock = FeatureClock(decode_sample(paths, 64, LIMITS), WORKING_PX, LIMITS, all_ms=3.0)
    assert clock(()) == 0.0
    assert 0 < clock(("avg_brightness",)) < clock(NAMES)


def test_where_nothing_can_be_read_the_repair_is_named(paths: list[str]) -> None:
    with pytest.raises(CalibrationError, match="put the images back, or record again"):
        decode_sample(paths[1:], 64, LIMITS)
