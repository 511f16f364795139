"""Promises: error rates that calibration guarantees for a policy, if it rejects answers with a low score."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.base.errors import RequirementsError

Share = Annotated[float, Meta(ge=0, le=1)]
SMALLEST = 6e-8  # half a step of float32 below 1; probabilities stay this far from 0 and 1


def log_odds(probability: NDArray[np.floating] | float) -> NDArray[np.float64]:
    """Return ln(p / (1 - p)), the score of an answer with probability p; p stays SMALLEST away from 0 and 1."""
    clipped = np.clip(np.asarray(probability, np.float64), SMALLEST, 1 - SMALLEST)
    return np.log(clipped / (1 - clipped))


class Promise(Struct, frozen=True, forbid_unknown_fields=True):
    """A promise of one policy, fitted on held-out images: at most `wrong_at_most` of its answers are wrong.

    threshold: lowest accepted score, see `log_odds`. early: for each rung of a cascade but the last, the score below
    which it rejects the image at once, None for never. answered: share of images that are answered; wrong: share of
    wrong ones among these answers. saved: share of the mean time that early rejection saves. unknown_refused: share of
    rejected images among those of no class; None if none were tested.
    """

    wrong_at_most: Share
    threshold: float
    early: tuple[float | None, ...]
    answered: Share
    wrong: Share
    saved: float = 0.0
    unknown_refused: Share | None = None


class MissingPromise(Struct, frozen=True, forbid_unknown_fields=True):
    """An error rate that cannot be promised. images: total needed to promise it, None if none is likely to suffice."""

    wrong_at_most: Share
    images: int | None


class Promises(Struct, frozen=True, forbid_unknown_fields=True):
    """The promises of one policy, by rising error rate. recorded: number of images, near-duplicates counted once."""

    kept: tuple[Promise, ...]
    missing: tuple[MissingPromise, ...]
    recorded: int

    def promise_for(self, wrong_at_most: float) -> Promise:
        """Return the promise with the highest error rate up to `wrong_at_most`.

        Raises RequirementsError if there is none, with the reason, such as the number of missing images.
        """
        kept = [promise for promise in self.kept if promise.wrong_at_most <= wrong_at_most]
        if kept:
            return kept[-1]
        missing = [level for level in self.missing if level.wrong_at_most <= wrong_at_most]
        if not missing:
            least = min([level.wrong_at_most for level in self.kept] + [level.wrong_at_most for level in self.missing])
            why = f"the lowest level that is calibrated is {least:g}"
        elif (needed := missing[-1].images) is None:
            why = "even its surest answers are wrong too often: use a better model, or allow more wrong answers"
        else:
            more = float(f"{max(1, needed - self.recorded):.2g}")
            why = f"calibrate with about {more:,.0f} more images of the same kind ({self.recorded} were recorded)"
        raise RequirementsError(f"wrong_at_most {wrong_at_most:g} cannot be promised: {why}")
