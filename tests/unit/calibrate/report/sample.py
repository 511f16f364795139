"""Findings as a calibration of the starter family might give them, with every field set."""

from typing import Any

import msgspec

from jetsel.artefact.calibration import CalibrationFacts, CalibrationImages, MeasuredEnergy
from jetsel.artefact.promise import MissingPromise, Promise, Promises
from jetsel.calibrate.fit.chain import Lift, Reading
from jetsel.calibrate.judge.findings import (
    ClassFinding,
    Comparison,
    Findings,
    FittedChain,
    Guess,
    ImageFinding,
    ImageSample,
    Interval,
    PolicyDifference,
    Result,
    Spread,
)
from jetsel.image import Limits

LIMITS = Limits(max_bytes=16_000_000, max_pixels=50_000_000)
HOSTILE = "</title><script>alert('x')</script>\"'&<svg onload=alert(1)>{0}\udc80\x00"
MODELS = ("xs", "s", "m", "l", "xl")
POLICIES = {  # name -> top-1, top-5, mean time in ms
    "single:xs": (0.452, 0.731, 0.21),
    "single:s": (0.531, 0.792, 0.39),
    "single:m": (0.587, 0.829, 0.81),
    "single:l": (0.619, 0.846, 1.93),
    "single:xl": (0.633, 0.853, 3.87),
    "chain": (0.591, 0.834, 1.62),
    "cascade": (0.641, 0.861, 1.50),
    "multiplexer": (0.604, 0.841, 1.33),
}
FRONT = {
    "cascade:1": (0.646, 0.863, 2.41),
    "cascade:2": (0.641, 0.861, 1.50),
    "cascade:3": (0.628, 0.851, 1.02),
    "cascade:4": (0.601, 0.840, 0.71),
    "cascade:5": (0.552, 0.812, 0.44),
    "chain:1": (0.604, 0.841, 1.91),
    "chain:2": (0.566, 0.815, 0.88),
}
BOUNDS = {
    "best single": (0.633, 0.853, 3.87),
    "oracle": (0.748, 0.912, 0.88),
}
LIFT = Lift(Reading(("n_keypoints", "contrast"), 101), points=1.5, error_points=0.4, adds=True)
CHAIN = FittedChain(LIFT, offered=True, chooser_ms=0.148)


def result(name: str, top1: float, top5: float, ms: float, *, energy: bool = True) -> Result:
    """One policy's result, its other figures derived from these three."""
    return Result(
        name=name,
        top1=top1,
        top5=top5,
        top1_interval=Interval(top1 - 0.011, top1 + 0.012),
        time_ms=Spread(ms, ms * 0.8, ms * 2.4),
        energy_mj=Spread(ms * 5.1, ms * 4.2, ms * 11) if energy else None,
        runs={model: 0.98 - 0.23 * i for i, model in enumerate(MODELS)},
        vs_best_single=PolicyDifference(100 * (top1 - 0.633), ms / 3.87),
    )


def comparison(*, energy: bool = True) -> Comparison:
    """Ten policies, two bounds."""
    return Comparison(
        best_single="xl",
        policies={name: result(name, *figures, energy=energy) for name, figures in POLICIES.items()},
        bounds={name: result(name, *figures, energy=energy) for name, figures in BOUNDS.items()},
        chain=CHAIN,
        front={name: result(name, *figures, energy=energy) for name, figures in FRONT.items()},
    )


def findings(*, labels_from: str | None = None, noisy: str | None = None, energy: bool = True) -> Findings:
    """A whole calibration of the starter family."""
    facts = CalibrationFacts(
        family="starter",
        labels_sha256="a" * 64,
        identities={model: f"{i}" * 64 for i, model in enumerate(MODELS)},
        feature_table="b" * 64,
        decode_px=64,
        features_px=4096,
        created="2026-11-21",
        images=CalibrationImages(count=8000, labels_from=labels_from, unknown=400),
        temperatures=dict.fromkeys(MODELS, 1.3),
        costs_ms={"xs": 0.21, "s": 0.39, "m": 0.81, "l": 1.93, "xl": 3.87},
        energy=MeasuredEnergy(mean_mj={"xs": 1.07, "s": 1.99, "m": 4.13, "l": 9.84, "xl": 19.7})
        if energy
        else MeasuredEnergy(reason="no meter"),
        default_policy="cascade",
        rival="single:xl",
        because="0.8 points above single:xl",
        figures={},
        promises={"cascade": promises()},
    )
    return Findings(
        calibration=facts,
        skipped={"not a photograph that can be decoded": 3, "label unknown to the family": 12},
        left_out=[("attic/1.jpg", "unknown label: attic")],
        conditions={"board": "Jetson TX2", "power mode": "MAXN", "onnxruntime": "1.23.2", "clocks": "locked, 1300 MHz"},
        noisy=noisy,
        installed=True,
        verdict="cascade was installed: 0.8 points above single:xl (0.2 to 1.4) in 0.39 times its time.",
        comparison=comparison(energy=energy),
        differing=ImageSample(310, images("differing", ["tabby cat", "Egyptian cat", "tabby cat"])),
        classes=[
            ClassFinding("tabby cat", 80, 0.61, {"Egyptian cat": 20}, refused=0.913),
            ClassFinding("lynx", 80, 0.93, {}, refused=0.0),
        ],
        current=result("the cascade of 2026-11-01", 0.627, 0.85, 1.41, energy=energy),
        command="jetsel calibrate 'my cats'",
    )


def with_facts(findings: Findings, **changes: Any) -> Findings:
    """The findings of a calibration with some other facts."""
    return msgspec.structs.replace(findings, calibration=msgspec.structs.replace(findings.calibration, **changes))


def promises() -> Promises:
    """Two levels."""
    five = Promise(0.05, 2.1, (None, 0.3), answered=0.412, wrong=0.043, saved=0.183, unknown_refused=0.931)
    ten = Promise(0.1, 1.4, (None, 0.1), answered=0.573, wrong=0.091, saved=0.122, unknown_refused=0.884)
    return Promises((five, ten), (MissingPromise(0.01, None), MissingPromise(0.02, 12_340)), 7900)


def of_twelve_models() -> Findings:
    """A calibration of twelve models with long names, in which no model dominates another but one."""
    made = findings()
    names = [f"lite{number}-{200 + 20 * number}-int8" for number in range(12)]
    figures = [(0.5 + 0.03 * number, 0.7 + 0.02 * number, 1.0 + number) for number in range(12)]
    figures[4] = (0.4, 0.6, 9.5)
    singles = {f"single:{name}": result(f"single:{name}", *one) for name, one in zip(names, figures, strict=True)}
    others = {name: one for name, one in made.comparison.policies.items() if name in ("cascade", "chain")}
    others["cascade"] = msgspec.structs.replace(others["cascade"], always=names[-1])
    compared = msgspec.structs.replace(made.comparison, policies=singles | others, best_single=names[-1])
    return msgspec.structs.replace(made, comparison=compared)


def images(folder: str, answers: list[str], count: int = 8) -> list[ImageFinding]:
    """Images of a folder that is not there, each with a guess of every model and an answer of three policies."""
    return [
        ImageFinding(
            path=f"photographs/{folder}/tabby cat/IMG_{2040 + i}.jpg",
            label="tabby cat",
            guesses={model: Guess("Egyptian cat", 0.31 + 0.1 * place) for place, model in enumerate(MODELS)},
            answers=dict(zip(("cascade", "chain", "multiplexer"), answers, strict=True)),
        )
        for i in range(count)
    ]


def hostile() -> Findings:
    """The first sample with a model, a policy, a label, paths and reasons that would rather be markup."""
    whole = {"cascade", "xl", "no meter", "locked, 1300 MHz", "n_keypoints"}

    def walk(part: object) -> object:
        if isinstance(part, str):
            return HOSTILE if part in whole else part.replace("tabby cat", HOSTILE)
        if isinstance(part, dict):
            return {walk(key): walk(value) for key, value in part.items()}
        return [walk(item) for item in part] if isinstance(part, list | tuple) else part

    built = msgspec.to_builtins(findings(labels_from="xl", noisy="no meter", energy=False))
    return msgspec.convert(walk(built), Findings, strict=False)


PAGES = {
    "full": findings(),
    "twelve": of_twelve_models(),
    "agreement": findings(labels_from="xl", noisy="the processor was throttled", energy=False),
    "hostile": hostile(),
}
