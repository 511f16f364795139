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
    """The fitted chain: its neighbours, gain and cost.

    offered: whether the calibration has the chain. chooser_ms, chooser_mj: of features and choice, the energy above
    idle power. kinds: the kinds of images that the neighbours distinguish.
    """

    lift: Lift
    offered: bool
    chooser_ms: float
    chooser_mj: float | None = None
    kinds: list[ImageKind] = []


class Guess(Struct, frozen=True):
    """A model's first answer to one image, and its probability from 0 to 1."""

    label: str
    probability: float


class ImageFinding(Struct, frozen=True):
    """One image with its label.

    guesses: by model. answers: by policy. why: the reason to check the label. Each is empty if it does not apply.
    """

    path: str
    label: str
    guesses: dict[str, Guess] = {}
    answers: dict[str, str] = {}
    why: str = ""


class ImageSample(Struct, frozen=True):
    """The total number of images of one kind, and some of these images."""

    total: int
    images: list[ImageFinding]


class Comparison(Struct, frozen=True, kw_only=True):
    """Results of all policies on the same images. bounds: best single and oracle.

    front: the offered operating points, such as `cascade:1`, the most expensive first.
    """

    best_single: str
    policies: dict[str, Result]
    bounds: dict[str, Result]
    chain: FittedChain | None  # None if there are too few images or models for neighbours
    front: dict[str, Result]


class ClassFinding(Struct, frozen=True):
    """One class: number of images, accuracy from 0 to 1, and the most frequent wrong answers with their counts.

    refused: the share that is refused under `Findings.shown_promise`, None without a promise.
    """

    name: str
    images: int
    right: float
    instead: dict[str, int]
    refused: float | None = None


class PromiseCheck(Struct, frozen=True, kw_only=True):
    """One promise of a policy, checked on other images. Shares are from 0 to 1.

    answered: of the images. wrong, wrong_interval: of the answers, None if no image was answered. is_kept: False if the
    whole interval is above `wrong_at_most`, None if only `wrong` is.
    """

    policy: str
    wrong_at_most: float
    answered: float
    wrong: float | None
    wrong_interval: Interval | None
    is_kept: bool | None


class DoubtfulFindings(Struct, frozen=True):
    """Images to check: `contradicted` by the models, `near` to an image of another class, `far` from their own class.

    without: why `near` and `far` are unknown; None if they are known.
    """

    contradicted: ImageSample
    near: ImageSample
    far: ImageSample
    without: str | None = None


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
        """The policy for requests that name none."""
        return self.calibration.default_policy

    @property
    def promises(self) -> Promises | None:
        """The promises of the winner, None if the images have no labels."""
        return self.calibration.promises.get(self.winner)

    @property
    def shown_promise(self) -> Promise | None:
        """The winner's promise of the level nearest to 5 %, by which the report shows each class's refusals."""
        kept = () if self.promises is None else self.promises.kept
        return min(kept, key=lambda one: abs(one.wrong_at_most - SHOWN_LEVEL), default=None)
