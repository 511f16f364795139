"""Small pictures of what went through the gateway itself, where its owner allows them: the last ones, in memory."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any

import numpy as np

from jetsel import image
from jetsel.base.errors import JetselError

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
        try:
            bgr = picture if isinstance(picture, np.ndarray) else image.decode(picture, self._limits, SIDE_PX).bgr
        except JetselError:
            return None  # the daemon reads what this does not: only its answer counts
        shorter_px = round(SIDE_PX * min(bgr.shape[:2]) / max(bgr.shape[:2]))
        return image.jpeg(bgr, max(1, shorter_px), QUALITY)
