"""What `jetsel watch` reports of cameras: kept as long as it is fresh, for `status`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgspec import structs

from jetsel.base.errors import OverLimitError
from jetsel.wire.cameras import MOST_CAMERAS, CameraReport, CameraStatus

FRESH_S = 10.0  # a report comes every two seconds

Key = tuple[str, str, str | None]  # sender, camera and region: users do not replace each other's


class Cameras:
    """The last report of each camera. Any thread may call."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._reports: dict[Key, tuple[CameraReport, float]] = {}

    def report(self, sender: str, cameras: list[CameraReport]) -> None:
        """Take in the cameras of a user, each in place of its last report; raises OverLimitError if it has no room."""
        now_s = self._now()
        with self._lock:
            known = self._fresh(now_s) | {(sender, one.name, one.region): (one, now_s) for one in cameras}
            if len(known) > MOST_CAMERAS:
                raise OverLimitError(f"the status holds {MOST_CAMERAS} cameras and regions: watch fewer of them")
            self._reports = known

    def status(self) -> list[CameraStatus]:
        """Return what is known now, by name."""
        now_s = self._now()
        with self._lock:
            fresh = sorted(self._fresh(now_s).items(), key=lambda item: (item[0][1], item[0][2] or ""))
        return [CameraStatus(**structs.asdict(one), ago_s=round(now_s - then_s, 3)) for _, (one, then_s) in fresh]

    def _fresh(self, now_s: float) -> dict[Key, tuple[CameraReport, float]]:
        return {key: one for key, one in self._reports.items() if now_s - one[1] <= FRESH_S}
