"""The corpus is decoded as another decoder shows it, or as worked out by hand, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest

from jetsel.base.errors import BadImageError
from jetsel.image import decode
from tests.unit.image.corpus import corpus
from tests.unit.image.files import LIMITS

WHOLE_PX = 1_000_000
MOST_LEVELS = 2.0


@pytest.mark.slow
def test_each_file_of_the_corpus_shows_what_it_should_or_is_refused() -> None:
    cases = list(corpus())
    assert len({name for name, _, _ in cases}) == len(cases) > 150
    wrong = {}
    for name, data, expected in cases:
        try:
            bgr = decode(data, LIMITS, WHOLE_PX).bgr
        except BadImageError as error:
            if not isinstance(expected, str) or expected not in str(error):
                wrong[name] = str(error)
            continue
        if isinstance(expected, str) or bgr.shape != expected.shape:
            wrong[name] = f"decoded, {bgr.shape}"
        elif (levels := np.abs(bgr.astype(float) - expected).mean()) > MOST_LEVELS:
            wrong[name] = f"{levels:.1f} levels off"
    assert wrong == {}
