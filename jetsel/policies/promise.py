"""What a policy promises of its errors: the score that says how sure an answer is, and the least one for each level."""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from jetsel.base.errors import RequirementsError
from jetsel.policies.policy import Prediction
from jetsel.premodel.doubt import log_odds, margin
from jetsel.wire import Criterion

Share = Annotated[float, Meta(ge=0, le=1)]


class Sight(NamedTuple):
    """What a score may read of an answer, each on a scale of log-odds or logarithms, higher for surer.

    probability: log-odds of the confidence. margin: log-odds of the margin to the next class. nearness: minus the
    logarithm of the distance from the cheapest model's embedding to the nearest one of training; NaN if unknown.
    """

    probability: float
    margin: float
    nearness: float


def sight_of(answer: Prediction, criterion: Criterion, distance: float | None) -> Sight:
    """Return what a score may read. distance: to the nearest embedding of training, None if there is none."""
    next_one = margin(answer.probabilities, 1 if criterion == "top1" else 5)
    near = math.nan if distance is None else -math.log(max(distance, 1e-7))
    return Sight(float(log_odds(answer.confidence)), float(log_odds(next_one)), near)


class Score(Struct, frozen=True, forbid_unknown_fields=True):
    """Weights on what is known of an answer; their sum with the offset is how sure it is."""

    probability: float = 0.0
    margin: float = 0.0
    nearness: float = 0.0
    offset: float = 0.0

    @property
    def weights(self) -> tuple[float, float, float]:
        """In the order of Sight."""
        return self.probability, self.margin, self.nearness

    def of(self, sights: NDArray[np.float64] | Sight) -> NDArray[np.float64]:
        """Return the scores (...) of sights (..., 3); NaN if something that it reads is not known."""
        array = np.asarray(sights, np.float64)
        used = [column for column, weight in enumerate(self.weights) if weight]
        total: NDArray[np.float64] = array[..., used] @ np.array(self.weights)[used] + self.offset
        return total


class Promise(Struct, frozen=True, forbid_unknown_fields=True):
    """One level of one policy, fitted on images that were held out.

    threshold: the least score of an answer. early: for each rung of a cascade but the last, the score below which
    it refuses at once, None for never. answered, wrong: the share of the images that is answered, and of the answers
    that is wrong. saved: the share of the mean time that early refusal saves. unknown_refused: of images of nothing
    that the family knows, the share that is refused; None if there were none.
    """

    wrong_at_most: Share
    threshold: float
    early: tuple[float | None, ...]
    answered: Share
    wrong: Share
    saved: float = 0.0
    unknown_refused: Share | None = None


class Missing(Struct, frozen=True, forbid_unknown_fields=True):
    """A level that cannot be promised. images: how many would be needed in all, None if no number is likely to do."""

    wrong_at_most: Share
    images: int | None


class Promises(Struct, frozen=True, forbid_unknown_fields=True):
    """What one policy can promise. kept: by rising level. recorded: the images, near-duplicates counted once."""

    score: Score
    kept: tuple[Promise, ...]
    missing: tuple[Missing, ...]
    recorded: int

    def at(self, wrong_at_most: float) -> Promise:
        """Return the promise of the highest level that is not above `wrong_at_most`.

        Raises RequirementsError that says how many images are missing.
        """
        able = [one for one in self.kept if one.wrong_at_most <= wrong_at_most]
        if able:
            return able[-1]
        lacking = [one for one in self.missing if one.wrong_at_most <= wrong_at_most]
        if not lacking:
            least = min([one.wrong_at_most for one in self.kept] + [one.wrong_at_most for one in self.missing])
            raise RequirementsError(
                f"wrong_at_most {wrong_at_most:g}: the lowest level that is calibrated is {least:g}"
            )
        need = lacking[-1]
        if need.images is None:
            why = "even its surest answers are wrong too often: use a better model, or allow more wrong answers"
        else:
            more = float(f"{max(1, need.images - self.recorded):.2g}")
            why = f"calibrate with about {more:,.0f} more images of the same kind ({self.recorded} were recorded)"
        raise RequirementsError(f"wrong_at_most {wrong_at_most:g} cannot be promised: {why}")
