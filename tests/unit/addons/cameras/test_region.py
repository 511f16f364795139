"""The region of a frame, in shares, and frames that are halved until they fit a message."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.addons.cameras.region import Region, fitting
from jetsel.base.errors import ConfigError

FRAME = np.arange(120 * 160 * 3, dtype=np.uint8).reshape(120, 160, 3)


def test_a_region_is_its_share_of_the_frame() -> None:
    assert np.array_equal(Region("0.5,0.25,0.25,0.5").of(FRAME), FRAME[30:90, 80:120])
    assert np.array_equal(Region(None).of(FRAME), FRAME)


def test_a_region_has_a_pixel_at_least() -> None:
    assert Region("0.999,0.999,0.0001,0.0001").of(FRAME).shape == (1, 1, 3)


@pytest.mark.parametrize(
    "text", ["", "1,2,3", "a,b,c,d", "0,0,0,1", "0.5,0,0.6,1", "-0.1,0,1,1", "100,50,200,100", "nan,0,1,1"]
)
def test_what_is_no_region_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match="is its right half"):
        Region(text)


def test_a_frame_that_fits_is_sent_as_it_is_and_others_are_halved() -> None:
    assert fitting(FRAME, 0.0576) is FRAME
    assert fitting(FRAME, 0.0575).shape == (60, 80, 3)
    assert fitting(FRAME, 0.01).shape == (30, 40, 3)
