"""Any policy without the most expensive models: what it would run of them, a cheaper one runs instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from jetsel.base.errors import JetselError, ModelUnavailableError
from jetsel.policies.policy import Decision, Evidence, OutOfTime, Policy, Prediction, Run, Steps, best


def capped(policy: Policy, models: Sequence[str], level: int, why: str) -> Policy:
    """Return the policy without the `level` most expensive of its family's models; the cheapest always stays.

    models: the family's, cheapest first. why: for people, as in "the power budget is exceeded".
    """
    return Capped(policy, tuple(models[: max(1, len(models) - level)]), why)


@dataclass(frozen=True)
class Capped:
    """The policy itself, as long as it asks for nothing that is left out.

    If it does, the best prediction so far is the answer. If there is none yet, the most expensive model that
    remains and can run does, and the policy takes its prediction for the one that it asked for.
    """

    policy: Policy
    models: tuple[str, ...]  # of the family, those that remain, cheapest first: any may stand in
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
    def first(self) -> tuple[str, ...]:
        """What remains of the policy's, and the one that stands in for the others."""
        return tuple(dict.fromkeys(m if m in self.models else self.models[-1] for m in self.policy.first))

    def __call__(self, photo: Evidence) -> Steps:
        """Let the policy choose, and keep it from what is left out."""
        steps, remaining = self.policy(photo), list(self.models)
        seen: list[Prediction] = []
        note = ""
        try:
            asked = next(steps)
            while True:
                unwanted = [model for model in asked.models if model not in self.models]
                told = f"without {' and '.join(unwanted)}, {self.why}"
                if unwanted and seen:
                    return Decision(best(seen), f"{told}; {best(seen).model} is the best that ran")
                try:
                    found = yield Run((remaining[-1],), f"{asked.because}; {told}") if unwanted else asked
                except (JetselError, OutOfTime) as error:
                    if unwanted and len(remaining) > 1 and isinstance(error, ModelUnavailableError):
                        remaining.pop()
                    else:
                        asked = steps.throw(error)
                    continue
                if unwanted:
                    note = f"; {remaining[-1]} stands in, {told}"
                    found *= len(asked.models)  # the policy waits for as many
                seen += found
                asked = steps.send(found)
        except StopIteration as end:
            decision: Decision = end.value
            return msgspec.structs.replace(decision, because=f"{decision.because}{note}")
