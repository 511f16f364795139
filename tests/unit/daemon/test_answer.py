"""Which exceptions mean that memory ran out, with those that the libraries raise here."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jetsel.base.errors import InternalError, NoMemoryError
from jetsel.daemon.answer import unexpected

MORE_THAN_THERE_IS = (2**20, 2**20, 2**6)  # 64 TiB


def test_want_of_memory_in_numpy_and_opencv_is_told_to_come_again_and_a_defect_is_not() -> None:
    thin = np.zeros((2**15, 1), np.uint8)
    with pytest.raises(MemoryError) as of_numpy:
        np.empty(MORE_THAN_THERE_IS, np.uint8)
    with pytest.raises(cv2.error) as of_opencv:
        cv2.resize(thin, (2**30, 2**15))
    for error in (of_numpy.value, of_opencv.value):
        assert type(unexpected(error, "x")) is NoMemoryError
    with pytest.raises(cv2.error) as defect:
        cv2.cvtColor(thin, cv2.COLOR_BGR2HSV)
    assert type(unexpected(defect.value, "x")) is InternalError
