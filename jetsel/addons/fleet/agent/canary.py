"""The canary: images that the daemon classifies before and after a plan, to see whether the plan makes it worse."""

from __future__ import annotations

import math
import statistics
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jetsel.addons.fleet.documents import PlannedFamily
from jetsel.addons.fleet.usage import CanaryResult
from jetsel.base.errors import BadImageError, CalibrationError, JetselError, ModelUnavailableError
from jetsel.client import Client
from jetsel.zoo import Labels

if TYPE_CHECKING:
    from jetsel.calibrate.record.photographs import Labelled

MOST_PHOTOGRAPHS = 200
CHANCE_ERRORS = 2.33  # standard errors: an unchanged accuracy falls by more than this once in a hundred times
SLOWER, LONGER_MS = 2.0, 5.0  # factor of the expected mean time, and added ms: less is noise or unimportant


@dataclass
class Canary:
    """folder: has a folder for each family, and in it one for each class, as `jetsel calibrate` reads them.

    has_asked: whether it has sent a request to the daemon.
    """

    folder: Path
    most_memory_mb: float | None
    deadline_ms: float | None = None
    has_asked: bool = False

    def photographs(self, family: str, labels: Labels, most: int) -> list[Labelled]:
        """Return at most `most` images of one family, evenly drawn. Unlabelled images only measure time."""
        from jetsel.calibrate.record.photographs import (
            find_images,  # imported here, because most rounds need none of it
        )

        folder = self.folder / family
        if not folder.is_dir():
            return []
        for need_labels in (True, False):
            with suppress(CalibrationError, BadImageError):
                images = find_images(folder, labels, None, need_labels=need_labels).photographs
                return list(images[:: max(1, math.ceil(len(images) / most))])
        return []

    def replay(self, client: Client, family: str, labels: Labels, most: int = MOST_PHOTOGRAPHS) -> CanaryResult | None:
        """Classify each image; None if there is none. Raises errors that a retry may repair, as NoDaemonError."""
        images = self.photographs(family, labels, most)
        if not images:
            return None
        self.has_asked = True
        times_ms, right, failed = [], 0, 0
        for image in images:
            try:
                answer = client.classify(image.path, family=family)
            except JetselError as fault:
                if fault.retry and not isinstance(fault, ModelUnavailableError):
                    raise  # the daemon is away or busy, which is no fault of its models
                failed += 1
                continue
            times_ms.append(answer.stages_ms.total)
            right += image.class_number is not None and answer.wnid == labels.wnids[image.class_number]
        labelled = any(image.class_number is not None for image in images)
        return CanaryResult(
            photographs=len(images),
            failed=failed,
            accuracy=right / len(images) if labelled else None,
            mean_ms=statistics.fmean(times_ms) if times_ms else None,
            memory_mb=client.status().resident_mb,
        )

    def degradation(self, planned: PlannedFamily, before: CanaryResult | None, after: CanaryResult) -> str | None:
        """Return how the daemon has become worse, None if it has not.

        It is worse if more images fail; if the accuracy is below the lower of the previous and the planned one by more
        than CHANCE_ERRORS (normal approximation of the binomial, at the mean of both shares); if the mean time exceeds
        the higher of the previous and the planned one by both SLOWER and LONGER_MS; or if mean time or memory exceeds
        the limits of [fleet].
        """
        if after.failed > (before.failed if before else 0):
            return f"{after.failed} of {after.photographs} images get no answer"
        accuracies = [one.accuracy for one in (planned, before) if one is not None and one.accuracy is not None]
        if accuracies and after.accuracy is not None:
            expected = min(accuracies)
            mean_share = (expected + after.accuracy) / 2
            noise = CHANCE_ERRORS * math.sqrt(mean_share * (1 - mean_share) / after.photographs)
            if after.accuracy < expected - noise:
                return (
                    f"the accuracy is {after.accuracy:.1%} on {after.photographs} images, {expected:.1%} was expected"
                )
        if after.mean_ms is not None and before is not None and before.mean_ms is not None:
            expected_ms = max(before.mean_ms, planned.mean_ms or 0.0)
            if after.mean_ms > max(SLOWER * expected_ms, expected_ms + LONGER_MS):
                return f"an answer takes {after.mean_ms:.1f} ms, {expected_ms:.1f} were expected"
        if after.mean_ms is not None and self.deadline_ms is not None and after.mean_ms > self.deadline_ms:
            return f"an answer takes {after.mean_ms:.1f} ms, fleet.deadline_ms is {self.deadline_ms:g}"
        if self.most_memory_mb is not None and after.memory_mb is not None and after.memory_mb > self.most_memory_mb:
            return f"the daemon holds {after.memory_mb:.0f} MB, fleet.memory_mb is {self.most_memory_mb:g}"
        return None
