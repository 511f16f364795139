"""Where a premodel could pay, what size of effect could be seen, and what errs alike; energy and memory derived."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from calibration.papers.tables import table
from calibration.papers.taylor.readers import points
from calibration.papers.taylor.selection import lift_of
from calibration.papers.taylor.shown import Shown
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.trials import Wish, as_accurate, within
from jetsel.calibrate.fit.temperature import fit_temperatures
from jetsel.calibrate.record.recorder import loaded_models
from jetsel.premodel import is_right
from jetsel.premodel.cascades import log_softmax
from jetsel.zoo import Family

BUDGETS = (0.75, 0.5, 0.3)
TX2_BYTES = 8e9  # section 4.1
GPU_W = 5.8, 6.9
"""Above the 5.7 W of a TX2 at idle, mode maxn, FP16: GoogLeNet, here for the two fastest models, and ResNet-50
(RCL-lab/QutibenchWeb at 66c3aaa, experimental_data_imagenet.csv). What one of its cores draws is in no source here."""


def paying(study: Study) -> Iterator[str]:
    """Give the tables of one family."""
    shown, name, models = Shown(study), study.family.name, study.recording.models
    counted, others = f"{name}, {len(study.right)} images", f"{name}, {len(study.test.classes)} other images"
    columns = "policy | images | beside its own shares dealt at random, points | 1.96 standard errors, points"
    yield table(f"{name}: what size of effect could be seen", columns, _effects(shown))
    yield limits(shown, f"{name}: what a premodel that skips the first rung may take, and what it takes")
    yield table(f"{counted}: correlation of being right", f"model | {' | '.join(models)}", _correlations(study))
    yield table(f"{others}: what errs alike", "who | top-1 % | beside the best single, points", _alike(study))
    yield table(f"{name}: memory (5.5)", "what | MB | of a TX2's 8 GB, derived", _memory(study))


def limits(shown: Shown, title: str) -> str:
    """Return a table of cascades: what the first rung costs on the images that go on from it."""
    columns = "cascade | first | its ms | goes on, % | limit ms | chain | chain-paper | all 29 features"
    return table(title, columns, _limits(shown))


def energy(shown: Shown, title: str) -> str:
    """Return a table of what policies and models take, derived."""
    columns = "policy | mJ of models, above idle | of the largest model's | choosing, share at most"
    return table(title, columns, _energy(shown))


def _effects(shown: Shown) -> list[str]:
    """Return a row for each premodel on the images held out, and on each kind of others."""
    study, rows = shown.study, []
    for name in ("chain-paper", "chain"):
        other, found = shown.trials[name].on_others(as_accurate()), shown.seen[name]
        parts = [(f"{len(study.right)}, held out", lift_of(found.column, study.right))]
        for kind in sorted(set(study.kinds)):
            of_kind = study.kinds == kind
            added = lift_of(other.column[of_kind], study.test.right[of_kind])
            parts.append((f"{of_kind.sum()}, {kind}", added))
        for words, added in parts:
            shows = 1.96 * 100 * added.std(ddof=1) / len(added) ** 0.5
            rows.append(f"{name} | {words} | {points(added)} | {shows:.1f}")
    return rows


def _limits(shown: Shown) -> list[str]:
    """Return a row for each cascade: what its first rung costs on the images that go on from it."""
    study, rows = shown.study, []
    slowest_ms = float(study.costs_ms.max())
    wishes: list[Wish] = [as_accurate(), *(within(b * slowest_ms, f"{b:g} of the largest's time") for b in BUDGETS)]
    for wish in wishes:
        ran = shown.trials["cascade"].on_others(wish).ran
        first, goes_on = int(ran.all(axis=0).argmax()), float((ran.sum(axis=1) > 1).mean())
        cost_ms = study.costs_ms[first]
        takes = (shown.chooser_ms["chain"], shown.chooser_ms["chain-paper"], study.clock())
        rows.append(
            f"{wish.name} | {study.recording.models[first]} | {cost_ms:.2f} | {100 * goes_on:.0f} | "
            f"{goes_on * cost_ms:.2f} | " + " | ".join(f"{one:.2f}" for one in takes)
        )
    return rows


def _energy(shown: Shown) -> list[str]:
    """Return a row for each policy and model: what models take, and choosing if a core drew what the GPU does."""
    study, draws_w = shown.study, np.array([GPU_W[0] if place < 2 else GPU_W[1] for place in range(5)])
    models_mj = study.costs_ms * draws_w
    rows = []
    for name, seen in shown.seen.items():
        mean_mj, choice_mj = float((seen.ran @ models_mj).mean()), shown.chooser_ms[name] * GPU_W[0]
        share = f"{100 * choice_mj / (mean_mj + choice_mj):.1f} %" if choice_mj else "-"
        rows.append(f"{name} | {mean_mj:.0f} | {mean_mj / models_mj[-1]:.2f} | {share}")
    named = zip(study.recording.models, models_mj, strict=True)
    return [*rows, *(f"{model} | {mj:.0f} | {mj / models_mj[-1]:.2f} | -" for model, mj in named)]


def _correlations(study: Study) -> list[str]:
    """Return the matrix of the correlations of being right."""
    found = np.corrcoef(study.right.T.astype(float))
    named = zip(study.recording.models, found, strict=True)
    return [f"{model} | " + " | ".join(f"{one:.2f}" for one in row) for model, row in named]


def _alike(study: Study) -> list[str]:
    """Return what the two largest models give alone and averaged, and all together at best."""
    temperatures = fit_temperatures(study.recording)
    right, models = study.test.right, study.test.models
    logs = [
        log_softmax(logits.astype(np.float32), temperatures[model])
        for model, logits in zip(models[-2:], study.test.logits[-2:], strict=True)
    ]
    both = is_right(np.mean(logs, axis=0), study.test.classes)
    best = int(study.right.mean(axis=0).argmax())
    rows = [f"{models[place]} | {100 * right[:, place].mean():.2f} | " for place in (-2, -1)]
    gain = points(both.astype(float) - right[:, best])
    rows.append(f"the mean of both | {100 * both.mean():.2f} | {gain} beside {models[best]}")
    some = right.any(axis=1)
    gain = points(some.astype(float) - right[:, best])
    return [*rows, f"the oracle over {len(models)} | {100 * some.mean():.2f} | {gain} beside {models[best]}"]


def _memory(study: Study) -> list[str]:
    """Return what the models take once loaded, by the growth of a fresh process, and the premodel's arrays."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        grown = pool.submit(_growth_bytes, study.family).result()
    premodel = study.features.nbytes + study.right.nbytes
    rows = {f"{len(study.family.models)} models, loaded": grown, "the premodel's arrays": premodel}
    return [f"{words} | {size / 1e6:.1f} | {100 * size / TX2_BYTES:.3f} %" for words, size in rows.items()]


def _growth_bytes(family: Family) -> int:
    before = _resident_bytes()
    with loaded_models(family):
        return _resident_bytes() - before


def _resident_bytes() -> int:
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
