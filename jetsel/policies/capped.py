"""Any policy without the most expensive models: what it would run of them, a cheaper one runs instead."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import msgspec

from jetsel.errors import JetselError, ModelUnavailableError
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Policy, Prediction, Run, Steps, best


def capped(policy: Policy, models: Sequence[str], level: int, why: str) -> Policy:
    """Return the policy without the `level` most expensive of its family's models; the cheapest always stays.

    models: the family's, cheapest first. why: for people, as in "the power budget is exceeded".
    """
    kept = max(1, len(models) - level)
    return Capped(policy, frozenset(models[kept:]), tuple(reversed(models[:kept])), why)


@dataclass(frozen=True)
class Capped:
    """The policy itself, as long as it asks for nothing that is left out.

    Where it does, the best prediction so far is the answer. Where there is none yet, the most expensive model that
    remains runs, and the policy takes its prediction for the one that it asked for.
    """

    policy: Policy
    left_out: frozenset[str]
    remaining: tuple[str, ...]  # the family's other models, most expensive first
    why: str

    @property
    def name(self) -> str:
        """That of the policy."""
        return self.policy.name

    @property
    def features(self) -> tuple[str, ...]:
        """Those of the policy."""
        return self.policy.features

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may run: any that remains may stand in."""
        return tuple(reversed(self.remaining))

    @property
    def first(self) -> tuple[str, ...]:
        """What remains of the policy's, and the one that stands in for the others."""
        kept = tuple(model for model in self.policy.first if model not in self.left_out)
        if len(kept) == len(self.policy.first) or self.remaining[0] in kept:
            return kept
        return (*kept, self.remaining[0])

    def __call__(self, photo: Evidence) -> Steps:
        """Let the policy choose, and keep it from what is left out."""
        steps = self.policy(photo)
        seen: list[Prediction] = []
        note = ""
        try:
            asked = next(steps)
            while True:
                try:
                    if self.left_out.isdisjoint(asked.models):
                        found = yield asked
                    elif seen:
                        steps.close()
                        return Decision(best(seen), f"{self._told(asked)}; {best(seen).model} is the best that ran")
                    else:
                        found = yield from self._stand_in(asked)
                        note = f"; {found[0].model} stands in: {self._told(asked)}"
                        if len(asked.models) > 1:  # it waits for as many predictions
                            steps.close()
                            return Decision(found[0], f"{asked.because}{note}")
                except (JetselError, OutOfTime) as error:  # noqa: PERF203  # each turn is a model's run
                    asked = steps.throw(error)
                else:
                    seen += found
                    asked = steps.send(found)
        except StopIteration as end:
            decision: Decision = end.value
            return msgspec.structs.replace(decision, because=f"{decision.because}{note}")

    def _stand_in(self, asked: Run) -> Generator[Run, tuple[Prediction, ...], tuple[Prediction, ...]]:
        """Run the most expensive model that remains and can; raises ModelUnavailableError where none can."""
        because = f"{asked.because}; {self._told(asked)}"
        for model in self.remaining[:-1]:
            try:
                return (yield Run((model,), because))
            except ModelUnavailableError:  # noqa: PERF203  # a model that is unavailable fails at once
                because = f"{because}; {model} is unavailable"
        return (yield Run(self.remaining[-1:], because))

    def _told(self, asked: Run) -> str:
        unwanted = [model for model in asked.models if model in self.left_out]
        return f"{' and '.join(unwanted)} {'is' if len(unwanted) == 1 else 'are'} left out, {self.why}"
