"""Numbers and sentences as the report writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from jetsel.artefact.promise import MissingPromise, Promises
from jetsel.calibrate.judge.findings import FittedChain

SPACE = "\u00a0"  # non-breaking, so that a number stays with its unit
UNKNOWN = "unknown"
# Characters that HTML and XML cannot carry (controls, surrogates of paths that are not UTF-8), and those that change
# the direction of text.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufffe\uffff]")


def clean(text: str) -> str:
    """Return the text with a replacement character for each character that a page cannot carry."""
    return _UNPRINTABLE.sub("\ufffd", text)


def short(name: str, most: int = 22) -> str:
    """Return the name cut to about `most` characters: a long name keeps its beginning and end."""
    name = clean(name).replace("\n", " ")
    return name if len(name) <= most else f"{name[: most // 2]}\u2026{name[-(most // 2) :]}"


def significant(value: float | None) -> str:
    """Return three significant digits, but all of an integer part: 0.0421, 1.50, 12.3, 1234; 'unknown' for None."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 12)}f}"


def percent(share: float) -> str:
    """Return a share from 0 to 1 as a percentage with one decimal, without the sign: 0.6213 is '62.1'."""
    return f"{100 * share:.1f}"


def signed(points: float) -> str:
    """Return percentage points with sign and one decimal: '+1.2', '\u22120.3'."""
    if abs(points) < 0.05:
        return "0.0"
    return f"{points:+.1f}".replace("-", "\u2212")


def change(value: float) -> str:
    """Return a ratio as a relative change in percent: 0.64 is '\u221236 %', 1.3 is '+30 %'."""
    return f"{round(100 * (value - 1)):+d}{SPACE}%".replace("-", "\u2212").replace("+0", "0")


def joined(names: Sequence[str]) -> str:
    """Return the names as a sentence lists them: 'xs', 'xs and s', 'xs, s and m'."""
    *head, last = names
    return f"{', '.join(head)} and {last}" if head else last


def number_of(count: int, noun: str) -> str:
    """Return a count with its noun: '1 image', '2,000 images'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def left_out(reasons: Mapping[str, int]) -> str:
    """Return a sentence: '15 files were left out: unknown label (12) and unreadable (3).'."""
    counted = joined([f"{reason} ({count:,})" for reason, count in reasons.items()])
    total = sum(reasons.values())
    return f"{number_of(total, 'file')} {'was' if total == 1 else 'were'} left out: {counted}."


def level(wrong_at_most: float) -> str:
    """Return an error rate from 0 to 1 as a percentage: 0.05 is '5 %'."""
    return f"{100 * wrong_at_most:g} %"


def why_missing(missing: MissingPromise) -> str:
    """Return why an error rate cannot be guaranteed: 'it needs about 480 images in all', rounded up to two digits."""
    if missing.images is None:
        return "too many of the surest answers are wrong, and more images would not help"
    step = 10 ** max(0, len(str(missing.images)) - 2)
    return f"it needs about {math.ceil(missing.images / step) * step:,} images in all"


def promises_in_words(policy: str, promises: Promises) -> str:
    """Return one sentence about the error rates that a policy can guarantee, or what the mildest one would need."""
    if not promises.kept:
        mildest = promises.missing[-1]
        return (
            f"{policy} cannot promise an error rate, not even {level(mildest.wrong_at_most)}: {why_missing(mildest)}."
        )
    strictest, *others = [(level(one.wrong_at_most), f"{100 * one.answered:.0f} %") for one in promises.kept]
    answered = [f"{strictest[1]} of the images if at most {strictest[0]} of the answers may be wrong"]
    return f"{policy} answers {joined([*answered, *(f'{share} if at most {most}' for most, share in others)])}."


def premodel_in_words(chain: FittedChain) -> str:
    """Return sentences about the chain's gain, its cost and the kinds of images that it distinguishes."""
    energy = "" if chain.chooser_mj is None else f" and {significant(chain.chooser_mj)} mJ"
    lift, reading = chain.lift, chain.lift.reading
    features = joined(reading.features) if len(reading.features) <= 3 else f"{len(reading.features)} features"
    adds = (
        f"choosing a path by {reading.k} neighbours in {features} adds {signed(lift.points)} "
        f"points, compared with one path for all images at equal cost (standard error {lift.error_points:.1f}); "
        f"features and choice take {significant(chain.chooser_ms)} ms{energy}"
    )
    verdict = "may be chance" if lift.points > 0 else "is no gain"
    not_offered = f". That {verdict}, so chain is listed for comparison only; --policy chain installs it all the same"
    kinds = "".join(
        f" {100 * kind.share:.0f} % of the images are {kind.look}: these go to {kind.model} first."
        for kind in chain.kinds
    )
    other_share = 1 - sum(kind.share for kind in chain.kinds)
    if chain.kinds and other_share >= 0.005:
        kinds += f" The other {100 * other_share:.0f} % go to other models first; no single feature describes them."
    return f"The premodel: {adds}{'' if chain.offered else not_offered}.{kinds}"


def metric_name(labels_from: str | None) -> str:
    """Return the name of the share of right answers: agreement if a model's answers replace labels, or accuracy."""
    return "Accuracy" if labels_from is None else "Agreement"
