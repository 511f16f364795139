"""What the paper's own figures add up to."""

from __future__ import annotations

from collections.abc import Iterator

from calibration.papers.tables import table

GAINS = 70.75, 12.84, 2.55  # section 3.2: what MobileNet, then Inception, then ResNet add, points
CHOSEN, ORACLE = 87.44, 91.2  # section 8 and 5.1
OF_MODELS = 16.6, 10.7, 7.6  # section 5.1: points over MobileNet, ResNet and Inception


def identities() -> Iterator[str]:
    """Give a table of sums beside what the paper reports."""
    listed = " + ".join(f"{gain:g}" for gain in GAINS)
    rows = [
        f"right on some of its three models (3.2): {listed} | {sum(GAINS):.2f} | its choice among them is right on "
        f"{CHOSEN:g} (8), which is {CHOSEN - sum(GAINS):.2f} more than any choice can be",
        f"of the oracle: {CHOSEN:g} / {ORACLE:g} | {100 * CHOSEN / ORACLE:.1f} | it never picks a model that "
        "fails while another succeeds (5.1), which would be 100",
        f"the best single model: {CHOSEN:g} - {OF_MODELS[2]:g} | {CHOSEN - OF_MODELS[2]:.1f} | published for "
        "Inception v4: 80.2",
        f"MobileNet alone: {CHOSEN:g} - {OF_MODELS[0]:g} | {CHOSEN - OF_MODELS[0]:.1f} | it is right on "
        f"{GAINS[0]:g} (3.2)",
    ]
    yield table("The paper's figures, %", "what | sum | beside it", rows)
