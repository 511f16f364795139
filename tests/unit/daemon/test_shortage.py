"""Which exceptions mean that memory ran out, with those that the libraries raise here."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from jetsel.daemon.shortage import out_of_memory

MORE_THAN_THERE_IS = (2**20, 2**20, 2**6)  # 64 TiB


def test_numpy_s_own_kind_of_memory_error_is_one() -> None:
    with pytest.raises(MemoryError) as caught:
        np.empty(MORE_THAN_THERE_IS, np.uint8)
    told = out_of_memory(caught.value)
    assert told is not None
    assert (told.code, told.retry) == ("busy", True)


def test_opencv_s_insufficient_memory_is_one_and_its_other_errors_are_not() -> None:
    thin = np.zeros((2**15, 1), np.uint8)
    with pytest.raises(cv2.error) as caught:
        cv2.resize(thin, (2**30, 2**15))
    assert out_of_memory(caught.value) is not None
    with pytest.raises(cv2.error) as caught:
        cv2.cvtColor(thin, cv2.COLOR_BGR2HSV)
    assert out_of_memory(caught.value) is None


def test_another_exception_is_none() -> None:
    assert out_of_memory(ValueError("memory")) is None
