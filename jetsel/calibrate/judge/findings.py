"""What a comparison found, as plain values: the report shows them and `--json` prints them."""

from __future__ import annotations

from msgspec import Struct

from jetsel.artefact.promise import Promises


class Interval(Struct, frozen=True):
    """A 95 % confidence interval."""

    low: float
    high: float


class Spread(Struct, frozen=True):
    """A quantity over photographs."""

    mean: float
    p50: float
    p95: float


class PolicyDifference(Struct, frozen=True):
    """A policy beside a rival: right answers in points (of a hundred), time and energy as its own over the rival's."""

    points: float
    time_ratio: float
    energy_ratio: float | None = None


class Result(Struct, frozen=True, kw_only=True):
    """One policy on photographs that nothing of it was fitted on. Shares are from 0 to 1; times include the chooser's.

    precision, recall, f1: macro averages over the classes (section 4.2). coin: what the best mix of two single models
    would be right on in the same mean time, None if no model is as fast: a policy that does not
    beat it knows nothing of the photographs.
    """

    name: str
    top1: float
    top5: float
    top1_interval: Interval
    top5_interval: Interval
    precision: float
    recall: float
    f1: float
    time_ms: Spread
    time_interval: Interval  # of the mean
    energy_mj: Spread | None = None
    energy_reason: str | None = None
    runs: dict[str, float]  # model -> share of the photographs that it ran on
    in_doubt: float
    always: str | None = None  # the one model that it ran on every photograph, and no other
    coin: float | None
    vs_best_single: PolicyDifference
    vs_oracle: PolicyDifference


class Reliability(Struct, frozen=True):
    """How far a model's confidence is from how often it is right, before and after temperature scaling."""

    model: str
    temperature: float
    error_before: float  # expected calibration error (Guo et al. 2017, equation 3)
    error_after: float


class ImageKind(Struct, frozen=True):
    """Images that the chain begins with one model: their share of all, and how they look, as in `dark`."""

    model: str
    share: float
    look: str


class FittedChain(Struct, frozen=True):
    """The premodel as it was fitted: what its neighbours add, and what it costs.

    features, k: in which neighbours are near, and how many are asked. points: of right answers that it adds to one path
    for all images, at equal worth of cost, on images that it was not fitted on; with their standard error. offered:
    whether the calibration has the policy. chooser_ms, chooser_mj: of features and choice, above idle power. kinds: of
    images, which the neighbours tell apart.
    """

    features: list[str]
    k: int
    points: float
    error_points: float
    offered: bool
    chooser_ms: float
    chooser_mj: float | None = None
    kinds: list[ImageKind] = []


class Guess(Struct, frozen=True):
    """The first answer of a model to one image, and the probability that the model gives it, from 0 to 1."""

    label: str
    probability: float


class ImageFinding(Struct, frozen=True):
    """One image with its label.

    guesses, answers: of each model, and of each policy that chooses, if these differ. why: the label should be looked
    at again.
    """

    path: str
    label: str
    guesses: dict[str, Guess] = {}
    answers: dict[str, str] = {}
    why: str = ""


class ImageSample(Struct, frozen=True):
    """How many images something is true of, and some of them."""

    total: int
    images: list[ImageFinding]


class Comparison(Struct, frozen=True, kw_only=True):
    """All policies on the same images. `bounds` holds cheapest, best single, random and oracle; policies the rest.

    front: the operating points that are offered, `cascade:1` and so on, the most expensive first.
    """

    best_single: str
    policies: dict[str, Result]
    bounds: dict[str, Result]
    chain: FittedChain | None  # None if there are too few images or models for neighbours
    front: dict[str, Result]
    reliability: list[Reliability]


class ClassFinding(Struct, frozen=True):
    """One class: its images, the share that is right, and what the others were most often taken for.

    refused: the share that the promise of `Findings.refused_at` refuses; None if nothing is promised.
    """

    name: str
    images: int
    right: float
    instead: dict[str, int]
    refused: float | None = None


class PromiseCheck(Struct, frozen=True, kw_only=True):
    """One promise of a policy on images that it was not fitted on. Shares are from 0 to 1.

    answered: the share of the images that is answered. wrong, wrong_interval: of these answers, None if nothing was
    answered. is_kept: False if the interval is above `wrong_at_most`, None if only the share
    is.
    """

    policy: str
    wrong_at_most: float
    answered: float
    wrong: float | None
    wrong_interval: Interval | None
    is_kept: bool | None


class DoubtfulFindings(Struct, frozen=True):
    """Labels that all models contradict; images nearly the same as one of another class; images far from their class.

    without: why the last two are unknown; None if they are known.
    """

    contradicted: ImageSample
    near: ImageSample
    far: ImageSample
    without: str | None = None


class Findings(Struct, frozen=True, kw_only=True):
    """One calibration's report."""

    family: str
    created: str  # ISO date
    photographs: int
    skipped: dict[str, int]  # reason -> photographs left out
    left_out: list[tuple[str, str]]  # the first of them: path and reason
    labels_from: str | None  # a model's name if the labels are its answers: then right means agreement with it
    objective: str  # time or energy
    conditions: dict[str, str]
    noisy: str | None  # why the times cannot be trusted, or None
    dropped: dict[str, str] = {}  # models that were recorded no further, and why
    costs_ms: dict[str, float]
    energies_mj: dict[str, float] = {}  # of one run above idle power; empty: not measured, for energy_reason
    energies_half_mj: dict[str, float] = {}  # half of each one's 95 % interval
    energy_reason: str | None = None
    identities: dict[str, str]
    winner: str  # the policy that answers unless a request says otherwise
    rival: str
    installed: bool  # or to be installed, which is the next step
    verdict: str  # why it was installed or not, one sentence
    comparison: Comparison
    differing: ImageSample  # on which policies that choose give different answers
    classes: list[ClassFinding] = []  # of the winner, the worst first
    promises: Promises | None = None  # of the winner; None without labels
    refused_at: float | None = None  # of the levels that are promised, the one nearest to 5 %
    unknown_images: int = 0  # of nothing that the family knows, by which promises were tested
    doubtful: DoubtfulFindings | None = None  # None if the labels are a model's
    current: Result | None = None  # what is in use, on the same images; None if nothing is
    command: str = "jetsel calibrate IMAGES"  # what was run, for a shell
    is_allowed: bool = True  # whether the winner keeps every limit, without which it is never installed
