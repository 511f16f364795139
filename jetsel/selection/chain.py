"""The premodel of Taylor et al. as a policy: features in, one model chosen before any has run."""

from __future__ import annotations

from dataclasses import dataclass

from jetsel.errors import InDoubtError, ModelUnavailableError
from jetsel.premodel import Chain
from jetsel.selection.policy import Decision, Evidence, Run, Steps


@dataclass(frozen=True)
class ChainPolicy:
    """Runs the one model that the chain of nearest-neighbour links names (sections 3.1 and 3.3)."""

    name: str
    chain: Chain
    needs_features: bool = True

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
            because = f"the neighbours vote for {choice.model}"
            try:
                (seen,) = yield Run((choice.model,), because)
            except ModelUnavailableError:
                if photo.fallback in (None, choice.model):
                    raise
                because = f"{choice.model} is unavailable"
            else:
                return Decision(seen, because, distance=choice.distance)
        else:
            because = "in doubt: no link's neighbours vote for its model"
            if photo.fallback is None:
                raise InDoubtError(
                    f"no model is expected to be right here (the neighbours are {choice.distance:.3f} away): "
                    'send "on_doubt": "use" for the fallback model\'s answer'
                )
        (seen,) = yield Run((photo.fallback,), because)
        return Decision(seen, f"{because}; {photo.fallback} is the fallback", choice.model is None, choice.distance)
