"""Any policy with a promise: of the answers that it gives, at most a share is wrong; the rest it refuses or marks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from jetsel.base.errors import InDoubtError, JetselError
from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Policy, Prediction, Run, Steps, best
from jetsel.policies.promise import Promise, Score, sight_of
from jetsel.wire import Criterion

Nearest = Callable[[NDArray[np.float32]], float]
"""An embedding (width,) of the cheapest model -> its distance to the nearest one of training."""


@dataclass(frozen=True, eq=False)
class Promised:
    """The policy, whose answers are in doubt if their score is below the promise's threshold.

    A doubtful answer is refused (`InDoubtError`) if the request has no fallback, otherwise marked. The promise is one
    of the policy as it was calibrated: if a model is unavailable or time runs out, the answer is in doubt. cheapest:
    the model whose embedding `nearest` takes.
    """

    policy: Policy
    promise: Promise
    score: Score
    criterion: Criterion
    cheapest: str
    nearest: Nearest | None

    @property
    def name(self) -> str:
        """That of the policy."""
        return self.policy.name

    @property
    def models(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.models

    @property
    def first(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.first

    @property
    def features(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.features

    def __call__(self, photo: Evidence) -> Steps:
        """Let the policy choose; refuse as early as its answer is known to be in doubt."""
        doubt: str | None = None
        failed: str | None = None  # why the policy does not run as calibrated
        steps, ran = self.policy(photo), list[Prediction]()
        move: Callable[[], Run] = partial(next, steps)
        while True:
            try:
                asked = move()
            except StopIteration as end:
                return self._judged(end.value, ran, doubt, failed, photo)
            except InDoubtError as error:
                error.covered = self.promise.answered
                raise
            except OutOfTime:
                if not ran:
                    raise
                late = f"time ran out; {best(ran).model} is the best that ran"
                return self._judged(Decision(best(ran), late, cut_short=True), ran, doubt, failed, photo)
            if doubt is None and failed is None:
                doubt = self._early_doubt(ran)
            if doubt is not None and photo.fallback is None:
                steps.close()
                self._refuse(doubt)
            try:
                seen = yield asked
            except (JetselError, OutOfTime) as error:
                if photo.fallback is None:
                    steps.close()
                    raise  # another policy may still keep its promise; this one did not run as calibrated
                is_late = isinstance(error, OutOfTime)
                failed = "too little time was left for the next model" if is_late else str(error)
                move = partial(steps.throw, error)
                continue
            ran += seen
            move = partial(steps.send, seen)

    def _early_doubt(self, ran: Sequence[Prediction]) -> str | None:
        """Return why a cascade gives up after these runs, None if it goes on."""
        place = len(ran) - 1
        if not (isinstance(self.policy, Cascade) and 0 <= place < len(self.promise.early)):
            return None
        limit = self.promise.early[place]
        value = self._value(self.policy.answer(ran), ran)
        if limit is None or value >= limit:
            return None
        return f"{ran[-1].model} is so unsure that the next models do not run ({self._words(value, limit)})"

    def _judged(
        self, decision: Decision, ran: Sequence[Prediction], doubt: str | None, failed: str | None, photo: Evidence
    ) -> Decision:
        """Return the decision, marked if it is in doubt. Raises InDoubtError if that is to be refused.

        doubt: why it is known to be already. failed: why the policy did not run as calibrated; then the answer is in
        doubt, and tells nothing of the images.
        """
        if failed is None and doubt is None and decision.in_doubt:
            doubt = f"{self.policy.name} expects no model to be right"
        elif failed is None and doubt is None:
            value = self._value(decision.seen, ran)
            if value < self.promise.threshold or math.isnan(value):
                doubt = f"{decision.seen.model} is not sure enough ({self._words(value, self.promise.threshold)})"
        if doubt is not None and photo.fallback is None:
            self._refuse(doubt)
        why = f"the promise does not hold: {failed}" if failed is not None else doubt
        return msgspec.structs.replace(
            decision,
            because=decision.because if why is None else f"{why}; {decision.because}",
            in_doubt=why is not None,
            wrong_at_most=self.promise.wrong_at_most,
            covered=None if failed is not None else self.promise.answered,
        )

    def _value(self, answer: Prediction, ran: Sequence[Prediction]) -> float:
        """Return the score of an answer; NaN, which no threshold lets pass, if something that it reads is unknown."""
        embedding = next((one.embedding for one in ran if one.model == self.cheapest), None)
        distance = None
        if self.score.nearness and self.nearest is not None and embedding is not None:
            distance = self.nearest(embedding)
        return float(self.score.of(sight_of(answer, self.criterion, distance)))

    def _words(self, value: float, least: float) -> str:
        return f"score {value:.2f}, but wrong_at_most {self.promise.wrong_at_most:g} needs at least {least:.2f}"

    def _refuse(self, doubt: str) -> NoReturn:
        error = InDoubtError(f'in doubt: {doubt}. Send "on_doubt": "use" to get the answer, marked as in doubt')
        error.covered = self.promise.answered
        raise error
