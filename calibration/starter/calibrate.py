"""Fit the starter family's chooser on photographs: `python -m calibration.starter.calibrate tiny100-calibrate.tar`.

Writes jetsel/zoo/starter/calibration and prints what each policy gives on the photographs it was fitted on (the chains
are judged with whole photographs held out). `--judge` prints the same table for other photographs and fits nothing.
"""

from __future__ import annotations

import argparse
import datetime
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel import image, premodel
from jetsel.calibrate.recording import Recording
from jetsel.calibrate.replay import Outcome, judge_policy
from jetsel.calibrate.temperature import calibration_error, fit_temperature
from jetsel.calibrate.thresholds import Front, fit_cascades
from jetsel.engines import Engine, open_engine
from jetsel.features import NAMES, PAPER_SEVEN, extract, table_hash
from jetsel.premodel import Calibration, Rung, held_out_choices
from jetsel.selection import catalogue
from jetsel.selection.catalogue import CRITERIA
from jetsel.wire import Criterion
from jetsel.zoo import STARTER, Family, scan

K = 5  # section 3.3
FOLDS = 10  # section 4.2
SEED = 2018
TIMED_PHOTOGRAPHS = 300
LIMITS = image.Limits(max_bytes=16_000_000, max_pixels=50_000_000)


def photographs(tar_path: Path, labels: Sequence[str]) -> tuple[list[bytes], NDArray[np.int64]]:
    """Read `<wnid>/<file>` members in sorted order: the files' bytes and the class numbers."""
    number = {wnid: i for i, wnid in enumerate(labels)}
    with tarfile.open(tar_path) as tar:
        members = sorted((m for m in tar.getmembers() if m.isfile()), key=lambda m: m.name)
        handles = [tar.extractfile(member) for member in members]
        files = [handle.read() for handle in handles if handle is not None]
    return files, np.array([number[Path(member.name).parent.name] for member in members])


def record(family: Family, engines: dict[str, Engine], files: list[bytes], classes: NDArray[np.int64]) -> Recording:
    """Run every model on every photograph, through the code that serves; time each on some of them, in turns."""
    specs = {model.manifest.name: model.manifest.input for model in family.models}
    decoded = [image.decode(data, LIMITS, family.decode_px) for data in files]
    features = np.stack([extract(photograph.bgr) for photograph in decoded])
    logits = {name: [] for name in engines}  # type: dict[str, list[NDArray[np.float32]]]
    times: dict[str, list[float]] = {name: [] for name in engines}
    timed = set(np.random.default_rng(SEED).choice(len(files), TIMED_PHOTOGRAPHS, replace=False).tolist())
    for i, photograph in enumerate(decoded):
        for name, engine in engines.items():
            batch = image.model_input(photograph, specs[name])
            began = time.perf_counter()
            found = engine.infer(batch)
            if i in timed:
                times[name].append((time.perf_counter() - began) * 1e3)
            logits[name].append(found.logits[0])
        if i % 500 == 0:
            print(f"\r{i} of {len(files)} photographs", end="", flush=True)
    print()
    return Recording(
        models=tuple(engines),
        logits=np.stack([np.stack(logits[name]) for name in engines]),
        classes=classes,
        features=features,
        costs_ms={name: float(np.median(times[name])) for name in engines},
    )


def time_chooser(family: Family, files: list[bytes], names: tuple[str, ...], chain: premodel.Chain) -> float:
    """Median milliseconds of features and choice for one photograph."""
    times = []
    for data in files[:TIMED_PHOTOGRAPHS]:
        photograph = image.decode(data, LIMITS, family.decode_px)
        began = time.perf_counter()
        chain.choose(extract(photograph.bgr, names))
        times.append((time.perf_counter() - began) * 1e3)
    return float(np.median(times))


def choose_cascade(fronts: list[Front], best_single: float) -> Front:
    """The cheapest cascade that is as accurate as the best single model; the most accurate where none is."""
    good = [front for front in fronts if front.accuracy >= best_single]
    return min(good, key=lambda f: f.cost_ms) if good else max(fronts, key=lambda f: f.accuracy)


def fit(recording: Recording, family: Family, chooser_ms: float) -> Calibration:
    """Fit temperatures, cascades and the chain's tables, and name the default that does best."""
    temperatures = {
        model: fit_temperature(logits, recording.classes)
        for model, logits in zip(recording.models, recording.logits, strict=True)
    }
    costs = np.array([recording.costs_ms[model] for model in recording.models])
    cascades = {}
    for criterion in CRITERIA:
        right = recording.right(criterion)
        front = choose_cascade(
            fit_cascades(recording.confidences(criterion, temperatures), right, costs), float(right.mean(axis=0).max())
        )
        cascades[criterion] = tuple(
            Rung(recording.models[i], float(t)) for i, t in zip(front.rungs, front.thresholds, strict=True)
        )
    used = [NAMES.index(name) for name in PAPER_SEVEN]
    scaling = premodel.fit_scaling(recording.features[:, used])
    draft = Calibration(
        family=family.name,
        labels_sha256=family.labels.sha256,
        model_sha256={model.manifest.name: model.manifest.sha256 for model in family.models},
        feature_table=table_hash(),
        decode_px=family.decode_px,
        features=PAPER_SEVEN,
        k=K,
        temperatures=temperatures,
        costs_ms=dict(recording.costs_ms),
        cascades=cascades,
        default_policy=dict.fromkeys(CRITERIA, "cascade"),
        because="not compared yet",
        figures={},
        created=datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        minimum=scaling.minimum,
        maximum=scaling.maximum,
        points=scaling.apply(recording.features[:, used]),
        right={criterion: recording.right(criterion) for criterion in CRITERIA},
    )
    tables = {criterion: compare(draft, recording, criterion, chooser_ms, fitted=True) for criterion in CRITERIA}
    defaults, because = choose_default(tables, recording.models)
    figures = {
        criterion: {name: vars(outcome) for name, outcome in table.items()} for criterion, table in tables.items()
    }
    return replace(draft, default_policy=defaults, because=because, figures=figures)


def replace(calibration: Calibration, **changes: object) -> Calibration:
    """A copy with some fields changed."""
    fields = {name: getattr(calibration, name) for name in calibration.__struct_fields__}
    return Calibration(**{**fields, **changes})


def compare(
    calibration: Calibration,
    recording: Recording,
    criterion: Criterion,
    chooser_ms: float,
    *,
    fitted: bool,
) -> dict[str, Outcome]:
    """Replay every policy; `fitted` says that these are the photographs the chains remember, so they are held out."""
    fallback = recording.models[-1]
    used = [NAMES.index(name) for name in calibration.features]
    seen = Recording(
        recording.models, recording.logits, recording.classes, recording.features[:, used], recording.costs_ms
    )
    policies = catalogue(recording.models, calibration, {})[criterion]
    table = {}
    for name, policy in policies.items():
        cost = chooser_ms if policy.needs_features else 0.0
        if fitted and policy.needs_features:
            table[name] = _held_out(seen, criterion, calibration.k, cost, name)
        else:
            table[name] = judge_policy(policy, seen, criterion, calibration.temperatures, fallback, cost)
    return table


def _held_out(recording: Recording, criterion: Criterion, k: int, chooser_ms: float, name: str) -> Outcome:
    """What a chain gives on photographs that it was not fitted on, in ten folds."""
    right = recording.right(criterion)
    costs = [recording.costs_ms[model] for model in recording.models]
    votes: premodel.Votes = "optimum" if name == "chain" else "right"
    fold_of = np.random.default_rng(SEED).permutation(np.arange(len(right)) % FOLDS)
    chosen = held_out_choices(recording.features, right, costs, k, fold_of, votes)
    answered = np.where(chosen < 0, len(costs) - 1, chosen)  # in doubt: the fallback, the most expensive
    spent = np.array(costs)[answered] + chooser_ms
    runs = {model: float((answered == i).mean()) for i, model in enumerate(recording.models)}
    accuracy = float(right[np.arange(len(right)), answered].mean())
    return Outcome(accuracy, float(spent.mean()), float(np.quantile(spent, 0.95)), runs, float((chosen < 0).mean()))


def choose_default(tables: dict[Criterion, dict[str, Outcome]], models: tuple[str, ...]) -> tuple[dict[str, str], str]:
    """The fastest policy that is no less accurate than the best single model, for each criterion, and why."""
    defaults: dict[str, str] = {}
    reasons = []
    for criterion, table in tables.items():
        single = max((f"single:{model}" for model in models), key=lambda name: table[name].accuracy)
        good = [name for name in table if table[name].accuracy >= table[single].accuracy]
        best = min(good, key=lambda name: table[name].mean_ms)
        defaults[criterion] = best
        reasons.append(
            f"{criterion}: {best} is right on {100 * table[best].accuracy:.1f} % in {table[best].mean_ms:.2f} ms, "
            f"{single} on {100 * table[single].accuracy:.1f} % in {table[single].mean_ms:.2f} ms"
        )
    return defaults, "of the policies at least as accurate as the best single model, the fastest: " + "; ".join(reasons)


def show(table: dict[str, Outcome], criterion: Criterion, n: int) -> None:
    """Print one comparison as a Markdown table."""
    print(f"\n{criterion} on {n} photographs\n")
    print("| policy | right % | mean ms | p95 ms | runs of each model % | in doubt % |\n|---|---|---|---|---|---|")
    for name, outcome in table.items():
        runs = ", ".join(f"{model} {100 * share:.0f}" for model, share in outcome.runs.items() if share)
        print(
            f"| {name} | {100 * outcome.accuracy:.2f} | {outcome.mean_ms:.3f} | {outcome.p95_ms:.3f} | {runs} "
            f"| {100 * outcome.in_doubt:.1f} |"
        )


def show_models(recording: Recording, temperatures: dict[str, float]) -> None:
    """Print each model's temperature and calibration error before and after it, and the oracle."""
    right = recording.right("top1")
    plain = recording.confidences("top1", dict.fromkeys(recording.models, 1.0))
    cooled = recording.confidences("top1", temperatures)
    print("\n| model | top-1 % | temperature | calibration error before | after |\n|---|---|---|---|---|")
    for i, model in enumerate(recording.models):
        before, after = (calibration_error(c[:, i], right[:, i]) for c in (plain, cooled))
        print(f"| {model} | {100 * right[:, i].mean():.2f} | {temperatures[model]:.3f} | {before:.3f} | {after:.3f} |")
    print(f"\noracle: {100 * right.any(axis=1).mean():.2f} %")


def main() -> None:
    """Fit and save, or judge what was saved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("photos", type=Path, help="a tar of <wnid>/<file>.JPEG")
    parser.add_argument("--judge", action="store_true", help="fit nothing: judge the saved calibration on these")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    family = scan([STARTER]).families["starter"]
    engines = {
        m.manifest.name: open_engine("onnxruntime", m.manifest.name, m.path, concurrency=1, threads=1)
        for m in family.models
    }
    files, classes = photographs(options.photos, family.labels.wnids)
    recording = record(family, engines, files, classes)
    used = [NAMES.index(name) for name in PAPER_SEVEN]
    target = STARTER / "calibration"
    if options.judge:
        calibration = premodel.load(target)
        chain = premodel.chain_from(calibration, "top1", "optimum")
    else:
        right = recording.right("top1")
        costs = [recording.costs_ms[model] for model in recording.models]
        chain = premodel.fit_chain(recording.models, recording.features[:, used], right, costs, K, "optimum")
    chooser_ms = time_chooser(family, files, PAPER_SEVEN, chain)
    print(f"features and choice: {chooser_ms:.3f} ms (median)")
    if not options.judge:
        calibration = fit(recording, family, chooser_ms)
        premodel.save(calibration, target)
    show_models(recording, calibration.temperatures)
    for criterion in CRITERIA:
        show(
            compare(calibration, recording, criterion, chooser_ms, fitted=not options.judge),
            criterion,
            len(files),
        )
        print("\ncascade:", " then ".join(f"{r.model} from {r.threshold}" for r in calibration.cascades[criterion]))
    print(f"\n{calibration.because}")


if __name__ == "__main__":
    main()
