"""Any policy with a promise, a calibrated error rate: answers that might break it are rejected or marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import msgspec

from jetsel.artefact.promise import Promise, log_odds
from jetsel.base.errors import InDoubtError, JetselError
from jetsel.policies.cascade import Cascade
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Policy, Prediction, Run, Steps, best_so_far


@dataclass(frozen=True, eq=False)
class WithPromise:
    """Policy that runs another one and checks its answers: in doubt if their score is below the promise's threshold.

    A doubtful answer is rejected with InDoubtError if the request has no fallback, otherwise marked. The promise holds
    for the policy as calibrated: if a model is unavailable or time runs out, the answer is in doubt.
    """

    policy: Policy
    promise: Promise

    @property
    def name(self) -> str:
        """Name of the policy."""
        return self.policy.name

    @property
    def models(self) -> tuple[str, ...]:
        """Models of the policy."""
        return self.policy.models

    @property
    def first_models(self) -> tuple[str, ...]:
        """First models of the policy."""
        return self.policy.first_models

    @property
    def features(self) -> tuple[str, ...]:
        """Features of the policy."""
        return self.policy.features

    def __call__(self, photo: Evidence) -> Steps:
        """Run the policy; reject the image as soon as its answer is known to be in doubt."""
        doubt: str | None = None  # why the answer is in doubt
        failed: str | None = None  # why the policy does not run as calibrated
        steps, ran = self.policy(photo), list[Prediction]()
        advance: Callable[[], Run] = partial(next, steps)
        while True:
            try:
                request = advance()
            except StopIteration as end:
                return self._check_doubt(end.value, doubt, failed, photo)
            except InDoubtError as error:
                error.covered = self.promise.answered
                raise
            except OutOfTime:
                if not ran:
                    raise
                late = f"time ran out; {best_so_far(ran).model} is the best that ran"
                return self._check_doubt(Decision(best_so_far(ran), late, cut_short=True), doubt, failed, photo)
            if doubt is None and failed is None:
                doubt = self._early_doubt(ran)
            if doubt is not None and photo.fallback is None:
                steps.close()
                self._reject(doubt)
            try:
                predictions = yield request
            except (JetselError, OutOfTime) as error:
                if photo.fallback is None:
                    steps.close()
                    raise  # another policy may still keep its promise; this one did not run as calibrated
                is_late = isinstance(error, OutOfTime)
                failed = "too little time was left for the next model" if is_late else str(error)
                advance = partial(steps.throw, error)
                continue
            ran += predictions
            advance = partial(steps.send, predictions)

    def _early_doubt(self, ran: Sequence[Prediction]) -> str | None:
        """Return why a cascade rejects the image after these runs, None if it continues."""
        rung = len(ran) - 1
        if not (isinstance(self.policy, Cascade) and 0 <= rung < len(self.promise.early)):
            return None
        limit = self.promise.early[rung]
        answer = self.policy.answer(ran)
        if limit is None or log_odds(answer.confidence) >= limit:
            return None
        return f"{ran[-1].model} is so unsure that the next models do not run ({self._figures(answer, limit)})"

    def _check_doubt(self, decision: Decision, doubt: str | None, failed: str | None, photo: Evidence) -> Decision:
        """Return the decision, marked if it is in doubt. Raises InDoubtError if the request has no fallback.

        doubt: the doubt that is already known. failed: why the policy did not run as calibrated; the answer is then in
        doubt, whatever its confidence.
        """
        if failed is None and doubt is None and decision.in_doubt:
            doubt = f"{self.policy.name} expects no model to be right"
        elif failed is None and doubt is None:
            prediction, least = decision.prediction, self.promise.threshold
            is_sure = log_odds(prediction.confidence) >= least  # False for NaN
            doubt = None if is_sure else f"{prediction.model} is not sure enough ({self._figures(prediction, least)})"
        if doubt is not None and photo.fallback is None:
            self._reject(doubt)
        why = f"the promise does not hold: {failed}" if failed is not None else doubt
        return msgspec.structs.replace(
            decision,
            because=decision.because if why is None else f"{why}; {decision.because}",
            in_doubt=why is not None,
            wrong_at_most=self.promise.wrong_at_most,
            covered=None if failed is not None else self.promise.answered,
        )

    def _figures(self, answer: Prediction, least: float) -> str:
        """Return the answer's probability and the one that a score of `least` needs, in words."""
        needed = 1 / (1 + math.exp(-least))
        return (
            f"probability {answer.confidence:.4g}, but wrong_at_most {self.promise.wrong_at_most:g} "
            f"needs at least {needed:.4g}"
        )

    def _reject(self, doubt: str) -> NoReturn:
        error = InDoubtError(f'in doubt: {doubt}. Send "on_doubt": "use" to get the answer, marked as in doubt')
        error.covered = self.promise.answered
        raise error
