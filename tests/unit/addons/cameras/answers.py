"""Answers as a daemon gives them, of which only what the tests name matters."""

from jetsel.wire import Answer, Stages


def answer(
    wnid: str, probability: float = 0.9, *, in_doubt: bool = False, wrong_at_most: float | None = None
) -> Answer:
    stages = Stages(queue=0, decode=0, features=None, choice=0, inference=[5.0], total=5.0)
    return Answer(
        1, "a", "pets", f"{wnid}, a synonym", wnid, probability, [], "xs", "cascade", "it is sure", in_doubt,
        False, [], stages, None, "not calibrated", 160, 120, wrong_at_most=wrong_at_most,
    )  # fmt: skip
