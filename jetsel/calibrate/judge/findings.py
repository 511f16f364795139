"""The findings of a comparison as plain values, which the report shows and `--json` prints."""

from __future__ import annotations

from msgspec import Struct

from jetsel.artefact.calibration import CalibrationFacts
from jetsel.artefact.promise import Promise, Promises
from jetsel.calibrate.fit.chain import Lift

SHOWN_LEVEL = 0.05


class Interval(Struct, frozen=True):
    """A 95 % confidence interval."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the distance of its ends."""
        return (self.high - self.low) / 2


class Spread(Struct, frozen=True):
    """Mean, median and 95th percentile of a quantity over images."""

    mean: float
    p50: float
    p95: float


class PolicyDifference(Struct, frozen=True):
    """A policy compared with a rival: difference of accuracy in percentage points, ratio of times."""

    points: float
    time_ratio: float


class Result(Struct, frozen=True, kw_only=True):
    """One policy on held-out images. Shares are from 0 to 1; times include the choice."""

    name: str
    top1: float
    top5: float
    top1_interval: Interval
    time_ms: Spread
    energy_mj: Spread | None = None
    runs: dict[str, float]  # model -> share of the images that it ran on
    always: str | None = None  # the model, if the policy runs this one alone on every image
    vs_best_single: PolicyDifference


class ImageKind(Struct, frozen=True):
    """The images that the chain starts with one model: their share of all images, and their look, such as `dark`."""

    model: str
    share: float
    look: str


class FittedChain(Struct, frozen=True):
    """The policy "chain" as fitted, which chooses models by the results on similar images: its gain and cost."""

    lift: Lift
    offered: bool  # whether the calibration includes it
    chooser_ms: float  # of features and choice for one image
    chooser_mj: float | None = None  # the same, above idle power
    kinds: list[ImageKind] = []  # the images that it starts with other models


class Guess(Struct, frozen=True):
    """A model's first answer to one image, and its probability from 0 to 1."""

    label: str
    probability: float


class ImageFinding(Struct, frozen=True):
    """One image that the report shows. A field that does not apply is empty."""

    path: str
    label: str
    guesses: dict[str, Guess] = {}  # by model
    answers: dict[str, str] = {}  # by policy
    why: str = ""  # the reason to check the label


class ImageSample(Struct, frozen=True):
    """Images with one thing in common."""

    total: int  # number of all such images
    images: list[ImageFinding]  # the few that the report shows


class Comparison(Struct, frozen=True, kw_only=True):
    """Results of all policies on the same images."""

    best_single: str  # the most accurate model
    policies: dict[str, Result]
    bounds: dict[str, Result]  # "best single" and "oracle"
    chain: FittedChain | None  # None if there are too few images or models for neighbours
    front: dict[str, Result]  # offered operating points, such as cascade:1, the most expensive first


class ClassFinding(Struct, frozen=True):
    """One class of the family."""

    name: str
    images: int  # their number
    right: float  # accuracy from 0 to 1
    instead: dict[str, int]  # the most frequent wrong answers -> their counts
    refused: float | None = None  # share that is refused to keep Findings.shown_promise, None without it


class PromiseCheck(Struct, frozen=True, kw_only=True):
    """A promised error rate of a policy, checked on other images. Shares are from 0 to 1."""

    policy: str
    wrong_at_most: float  # the promise
    answered: float  # share of the images
    wrong: float | None  # share of the answers, None if no image was answered
    wrong_interval: Interval | None
    is_kept: bool | None  # None if `wrong` is above the promise, but its interval is not


class DoubtfulFindings(Struct, frozen=True):
    """Images whose labels the owner should check."""

    contradicted: ImageSample  # by the models
    near: ImageSample  # to an image of another class
    far: ImageSample  # from the other images of their class
    without: str | None = None  # why `near` and `far` are unknown, None if they are known


class Findings(Struct, frozen=True, kw_only=True):
    """The content of one calibration's report."""

    calibration: CalibrationFacts
    skipped: dict[str, int]  # reason -> number of skipped files
    left_out: list[tuple[str, str]]  # the first skipped files: path and reason
    conditions: dict[str, str]
    noisy: str | None  # why the times are unreliable, or None
    dropped: dict[str, str] = {}  # model -> why its recording was stopped
    installed: bool  # whether the calibration is or will be installed
    is_allowed: bool = True  # whether the winner keeps every limit; otherwise it is never installed
    verdict: str  # why it was installed or not, one sentence
    comparison: Comparison
    differing: ImageSample  # images to which the policies give different answers
    classes: list[ClassFinding] = []  # of the winner, the worst first
    doubtful: DoubtfulFindings | None = None  # None if a model's answers replace labels
    current: Result | None = None  # of the policy in use, on the same images; None if there is none
    command: str = "jetsel calibrate IMAGES"  # the command line, quoted for a shell

    @property
    def winner(self) -> str:
        """Name of the policy that answers requests which name none."""
        return self.calibration.default_policy

    @property
    def promises(self) -> Promises | None:
        """The error rates that the winner can promise, None if the images have no labels."""
        return self.calibration.promises.get(self.winner)

    @property
    def shown_promise(self) -> Promise | None:
        """The winner's promised error rate nearest to 5 %, for which the report lists refusals; None without any."""
        kept = () if self.promises is None else self.promises.kept
        return min(kept, key=lambda one: abs(one.wrong_at_most - SHOWN_LEVEL), default=None)
