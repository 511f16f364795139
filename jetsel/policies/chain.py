"""The premodel of Taylor et al. as a policy: features in, one model chosen before any has run."""

from __future__ import annotations

from dataclasses import dataclass

from jetsel.errors import InDoubtError, ModelUnavailableError
from jetsel.policies.policy import Decision, Evidence, Run, Steps
from jetsel.premodel import Chain, Choice


@dataclass(frozen=True)
class ChainPolicy:
    """Runs the one model that the chain of nearest-neighbour links names (sections 3.1 and 3.3)."""

    name: str
    chain: Chain
    features: tuple[str, ...]

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that it may choose."""
        return self.chain.models

    @property
    def first(self) -> tuple[str, ...]:
        """Any of its models may be the one."""
        return self.models

    def __call__(self, photo: Evidence) -> Steps:
        """Choose, run, answer. No link's vote, or a chosen model that is unavailable, leaves it to the fallback."""
        assert photo.features is not None
        choice = self.chain.choose(photo.features)
        if choice.model is not None:
            because = f"the neighbours vote for {choice.model}{_trust(choice)}"
            try:
                (seen,) = yield Run((choice.model,), because)
            except ModelUnavailableError:
                if photo.fallback in (None, choice.model):
                    raise
                because = f"{choice.model} is unavailable"
            else:
                return Decision(seen, because, distance=choice.distance)
        else:
            far = f"the nearest known photographs are {choice.distance:.3f} away, too far to be believed"
            because = f"in doubt: {far if choice.is_far else 'no neighbours vote for any model'}"
            if photo.fallback is None:
                raise InDoubtError(f'{because}: send "on_doubt": "use" for the fallback model\'s answer')
        (seen,) = yield Run((photo.fallback,), because)
        return Decision(seen, f"{because}; {photo.fallback} is the fallback", choice.model is None, choice.distance)


def _trust(choice: Choice) -> str:
    """What calibration knows of choices at this distance (section 6)."""
    return "" if choice.confidence is None else f"; such choices were right {100 * choice.confidence:.0f} % of the time"
