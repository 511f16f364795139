"""Small pictures of what went through the gateway itself, where its owner allows them: the last ones, in memory."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import cv2
import numpy as np

from jetsel import image
from jetsel.errors import JetselError

SIDE_PX = 96
QUALITY = 70  # of JPEG: some 3 KB a picture


class Thumbnails:
    """The last `most`, by the id of their answers; none where that is 0."""

    def __init__(self, most: int, limits: image.Limits) -> None:
        self._most = most
        self._limits = limits
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    async def keep(self, answer_id: str, picture: Any) -> None:
        """Keep a photograph that was answered: encoded, or pixels (height, width, 3) uint8 BGR."""
        if not self._most:
            return
        small = await asyncio.to_thread(self._small, picture)
        if small is not None:
            self._kept[answer_id] = small
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def get(self, answer_id: str) -> bytes | None:
        """Return the JPEG, None where there is none (any more)."""
        return self._kept.get(answer_id)

    def _small(self, picture: Any) -> bytes | None:
        if isinstance(picture, np.ndarray):
            bgr = picture
        else:
            try:
                bgr = image.decode(picture, self._limits, SIDE_PX).bgr
            except JetselError:
                return None  # the daemon reads what this does not: only its answer counts
        scale = SIDE_PX / max(bgr.shape[:2])
        size = (max(1, round(bgr.shape[1] * scale)), max(1, round(bgr.shape[0] * scale)))
        encoded = cv2.imencode(
            ".jpg", cv2.resize(bgr, size, interpolation=cv2.INTER_AREA), [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
        )
        return encoded[1].tobytes()
