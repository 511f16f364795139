"""Tables 1 and 2, Figures 1, 5, 6a and 8, and the paper's other claims, for one family."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from calibration.papers.tables import table
from calibration.papers.taylor.readers import points
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.trials import Seen, Trial, Wish, as_accurate, within
from calibration.papers.taylor.ways import cascade, chain, chain_paper
from jetsel.calibrate.fit.selection import lift_of
from jetsel.calibrate.held_out import fit_temperatures
from jetsel.calibrate.metrics import macro
from jetsel.calibrate.record import loaded_models
from jetsel.features import NAMES, PAPER_SEVEN
from jetsel.policies.chain import PAPER_K
from jetsel.premodel import Neighbours, fit_scaling, is_right, optimum_votes
from jetsel.premodel.cascades import log_softmax
from jetsel.zoo import Family

BUDGETS = (0.75, 0.5, 0.3)
TIMED = 200  # choices
TX2_BYTES = 8e9  # section 4.1
GPU_W = 5.8, 6.9
"""Above the 5.7 W of a TX2 at idle, mode maxn, FP16: GoogLeNet, here for the two fastest models, and ResNet-50
(RCL-lab/QutibenchWeb at 66c3aaa, experimental_data_imagenet.csv). What one of its cores draws is in no source here."""


def figures(study: Study) -> Iterator[str]:
    """Give the tables of one family."""
    shown = _Shown(study)
    name, n, models = study.family.name, len(study.right), study.recording.models
    counted = f"{name}, {n} images"
    title = f"{name}, three of {len(study.test.classes)} other images: Table 1 and Figure 1"
    yield table(title, "image | right, top-5 | right, top-1 | the optimum's speed beside the largest", _table_1(study))
    yield table(f"{counted}: who is right, top-1", "models that are right | images, %", _patterns(study))
    columns = "features | ms | of the cheapest model's time"
    yield table(f"{counted}: Table 2, what features take, decoding apart", columns, _table_2(study))
    rows = [
        f"{model} | {100 * share:.1f} | {100 * optimal:.1f}"
        for model, share, optimal in zip(
            models, study.right.mean(axis=0), optimum_votes(study.right, study.costs_ms).mean(axis=0), strict=True
        )
    ]
    yield table(f"{counted}: Figure 5, who is the cheapest that is right", "model | right, % | the optimum, %", rows)
    columns = "policy | ms | of the best single's | top-1 % | top-5 % | precision % | recall % | F1 %"
    over = "geometric means over ten folds" if n >= 20 * len(study.family.labels.wnids) else "all folds together"
    yield table(f"{counted}: Figure 8, {over}", columns, shown.figure_8(geometric=over.startswith("geometric")))
    yield table(f"{counted}: claims", "claim (section) | the paper | chain-paper | chain | cascade", shown.claims())
    columns = "policy | images | beside its own shares dealt at random, points | an effect that would show, points"
    yield table(f"{name}: what size of effect could be seen", columns, shown.effects())
    columns = "cascade | first | its ms | goes on, % | limit ms | chain | chain-paper | all 29 features"
    yield table(
        f"{name}: what a premodel that skips the first rung may take, and what it takes", columns, shown.limits()
    )
    yield table(f"{counted}: correlation of being right", f"model | {' | '.join(models)}", _correlations(study))
    yield table(f"{name}, {len(study.test.classes)} other images: what errs alike", "who | top-1 % | ", _alike(study))
    yield table(f"{name}: memory (5.5)", "what | MB | of a TX2's 8 GB, derived", _memory(study))


def derived(study: Study) -> Iterator[str]:
    """Give what policies would take on a TX2, derived from published times and watts of models given by rank."""
    board = study.on_a_tx2()
    shown, counted = _Shown(board), f"{study.family.name}, {len(study.right)} images, with a TX2's times: derived"
    columns = "policy | ms | of the best single's | top-1 % | top-5 % | precision % | recall % | F1 %"
    yield table(f"{counted}: Figure 8", columns, shown.figure_8(geometric=True))
    yield table(f"{counted}: claims", "claim (section) | the paper | chain-paper | chain | cascade", shown.claims())
    columns = "cascade | first | its ms | goes on, % | limit ms | chain | chain-paper | all 29 features"
    yield table(f"{counted}: what a premodel that skips the first rung may take", columns, shown.limits())
    columns = "policy | mJ of models, above idle | of the largest model's | choosing, share at most"
    yield table(f"{counted}: energy", columns, shown.energy())


class _Shown:
    """The paper's chain, ours and the cascade, each held out."""

    def __init__(self, study: Study) -> None:
        self._study, plan = study, study.plan
        self._features_ms = {"chain-paper": study.clock(PAPER_SEVEN), "chain": plan.features_ms}
        ways = (chain_paper(self._features_ms["chain-paper"]), chain(plan), cascade())
        self._trials = {way.name: Trial(way, study.recording, study.folds, study.test) for way in ways}
        self._chooser_ms = {
            "chain-paper": self._features_ms["chain-paper"] + _choice_ms(study, PAPER_SEVEN, PAPER_K),
            "chain": self._features_ms["chain"] + _choice_ms(study, plan.features, plan.k),
            "cascade": 0.0,
        }

    @cached_property
    def _seen(self) -> dict[str, Seen]:
        return {name: trial.held_out(as_accurate()) for name, trial in self._trials.items()}

    def figure_8(self, *, geometric: bool) -> list[str]:
        """Return a row for each model, policy and the oracle."""
        study, n = self._study, len(self._study.right)
        costs, answers = study.costs_ms, study.recording.logits.argmax(axis=2)
        top5, best = study.recording.right("top5"), int(study.right.mean(axis=0).argmax())
        oracle = np.where(study.right, costs, np.inf).argmin(axis=1)
        listed = {model: (np.full(n, place), costs[place]) for place, model in enumerate(study.recording.models)}
        listed["the oracle"] = oracle, costs[oracle]
        for name, seen in self._seen.items():
            choice_ms = self._chooser_ms[name] - self._features_ms.get(name, 0.0)
            listed[name] = seen.column, seen.time_ms + choice_ms
        parts = [study.fold_of == fold for fold in np.unique(study.fold_of)] if geometric else [np.ones(n, bool)]
        rows = []
        for name, (column, time_ms) in listed.items():
            found = []
            for part in parts:
                classes, answered = study.recording.classes[part], answers[column[part], np.flatnonzero(part)]
                found.append(
                    [
                        np.broadcast_to(time_ms, n)[part].mean(),
                        (classes == answered).mean(),
                        top5[part, column[part]].mean(),
                        *macro(classes, answered),
                    ]
                )
            ms, *scores = np.exp(np.log(found).mean(axis=0))
            of_best = ms / costs[best]
            rows.append(f"{name} | {ms:.2f} | {of_best:.2f} | " + " | ".join(f"{100 * one:.1f}" for one in scores))
        return rows

    def claims(self) -> list[str]:
        """Return a row for each claim of section 5.1 and 5.5 that is one number."""
        study = self._study
        right, costs = study.right, study.costs_ms
        best, some = int(right.mean(axis=0).argmax()), right.any(axis=1)
        optimum = np.where(right, costs, np.inf).argmin(axis=1)
        top5, rows_of = study.recording.right("top5"), np.arange(len(right))

        def row(claim: str, paper: str, of: Callable[[str, Seen], str]) -> str:
            return f"{claim} | {paper} | " + " | ".join(of(name, seen) for name, seen in self._seen.items())

        def gain(seen: Seen, table: NDArray[np.bool_]) -> str:
            return points(table[rows_of, seen.column].astype(float) - table[:, best])

        def share(each: NDArray[np.bool_]) -> str:
            return f"{100 * each.mean():.1f} %"

        always = (
            f"the model named is the optimum (5.1); always {study.recording.models[0]}: {share(optimum[some] == 0)}"
        )
        return [
            row(always, "95.6 %", lambda _, seen: share((seen.column == optimum)[some])),
            row("top-1 beside the best single, points (5.1)", "+7.52", lambda _, seen: gain(seen, right)),
            row("top-5 beside it, points (5.1)", "+0.34", lambda _, seen: gain(seen, top5)),
            row(
                "time of the best single over its own (5.1)",
                "1.8",
                lambda name, seen: f"{costs[best] / self._whole_ms(name, seen):.2f}",
            ),
            row(
                "of the oracle's accuracy (5.1)",
                "96 %",
                lambda _, seen: f"{100 * seen.correct.mean() / some.mean():.1f} %",
            ),
            row("fails while another model succeeds (5.1)", "never", lambda _, seen: share(~seen.correct & some)),
            row("in doubt, so that the largest model answers", "-", lambda _, seen: share(seen.in_doubt)),
            row(
                "choosing: share of the time (5.5)",
                "20 %",
                lambda name, seen: f"{100 * self._chooser_ms[name] / self._whole_ms(name, seen):.1f} %",
            ),
            row(
                f"{study.recording.models[0]}'s time over that of choosing (5.1)",
                "3",
                lambda name, _: f"{costs[0] / ms:.2f}" if (ms := self._chooser_ms[name]) else "-",
            ),
        ]

    def effects(self) -> list[str]:
        """Return a row for each premodel on the images held out, and on each kind of others."""
        study, rows = self._study, []
        for name in ("chain-paper", "chain"):
            other, found = self._trials[name].on_others(as_accurate()), self._seen[name]
            parts = [(f"{len(study.right)}, held out", lift_of(found.column, study.right))]
            for kind in sorted(set(study.kinds)):
                of_kind = study.kinds == kind
                added = lift_of(other.column[of_kind], study.test.right("top1")[of_kind])
                parts.append((f"{of_kind.sum()}, {kind}", added))
            for words, added in parts:
                shows = 1.96 * 100 * added.std(ddof=1) / len(added) ** 0.5
                rows.append(f"{name} | {words} | {points(added)} | {shows:.1f}")
        return rows

    def limits(self) -> list[str]:
        """Return a row for each cascade: what its first rung costs on the images that go on from it."""
        study, rows = self._study, []
        slowest_ms = float(study.costs_ms.max())
        wishes: list[Wish] = [as_accurate(), *(within(b * slowest_ms, f"{b:g} of the largest's time") for b in BUDGETS)]
        for wish in wishes:
            ran = self._trials["cascade"].on_others(wish).ran
            first, goes_on = int(ran.all(axis=0).argmax()), float((ran.sum(axis=1) > 1).mean())
            cost_ms = study.costs_ms[first]
            takes = (self._chooser_ms["chain"], self._chooser_ms["chain-paper"], study.clock())
            rows.append(
                f"{wish.name} | {study.recording.models[first]} | {cost_ms:.2f} | {100 * goes_on:.0f} | "
                f"{goes_on * cost_ms:.2f} | " + " | ".join(f"{one:.2f}" for one in takes)
            )
        return rows

    def energy(self) -> list[str]:
        """Return a row for each policy and model: what models take, and choosing if a core drew what the GPU does."""
        study, draws_w = self._study, np.array([GPU_W[0] if place < 2 else GPU_W[1] for place in range(5)])
        models_mj = study.costs_ms * draws_w
        rows = []
        for name, seen in self._seen.items():
            mean_mj, choice_mj = float((seen.ran @ models_mj).mean()), self._chooser_ms[name] * GPU_W[0]
            share = f"{100 * choice_mj / (mean_mj + choice_mj):.1f} %" if choice_mj else "-"
            rows.append(f"{name} | {mean_mj:.0f} | {mean_mj / models_mj[-1]:.2f} | {share}")
        named = zip(study.recording.models, models_mj, strict=True)
        return [*rows, *(f"{model} | {mj:.0f} | {mj / models_mj[-1]:.2f} | -" for model, mj in named)]

    def _whole_ms(self, name: str, seen: Seen) -> float:
        return float(seen.time_ms.mean()) + self._chooser_ms[name] - self._features_ms.get(name, 0.0)


def _choice_ms(study: Study, names: tuple[str, ...], k: int) -> float:
    """Return the median time of finding one image's neighbours and counting their votes."""
    known = study.columns(names)
    scaling = fit_scaling(known)
    near, votes, times_ms = Neighbours(scaling.apply(known)), optimum_votes(study.right, study.costs_ms), []
    for x in known[:TIMED]:
        began = time.thread_time()
        rows, _ = near.nearest(scaling.apply(x), k)
        votes[rows].sum(axis=0)
        times_ms.append((time.thread_time() - began) * 1e3)
    return study.clock.factor * float(np.median(times_ms))


def _table_1(study: Study) -> list[str]:
    """Return the first test image that all get right, one beyond the cheapest, and one for the largest alone."""
    top1, top5, models = study.test.right("top1"), study.test.right("top5"), study.test.models
    m = len(models)
    from_model = [(top1 == (np.arange(m) >= first)).all(axis=1) for first in (0, m // 2, m - 1)]
    rows = []
    for words, such in zip(("easy", "harder", "hardest"), from_model, strict=True):
        place = int(such.argmax())
        listed = [", ".join(np.array(models)[table[place]]) for table in (top5, top1)]
        optimum = [study.costs_ms[-1] / study.costs_ms[table[place].argmax()] for table in (top5, top1)]
        rows.append(f"{words} | {listed[0]} | {listed[1]} | {optimum[0]:.1f} and {optimum[1]:.1f} times")
    return rows


def _patterns(study: Study) -> list[str]:
    """Return how often all are right, none, each but those below some size, and any other set."""
    right, models = study.right, study.recording.models
    m = len(models)
    shares = {"all": right.all(axis=1).mean(), "none": (~right.any(axis=1)).mean()}
    for first in range(1, m):
        shares[f"{models[first]} and larger alone"] = (right == (np.arange(m) >= first)).all(axis=1).mean()
    shares["another set: some model is wrong where a smaller one is right"] = 1 - sum(shares.values())
    return [f"{words} | {100 * share:.1f}" for words, share in shares.items()]


def _table_2(study: Study) -> list[str]:
    """Return a row for sets of features, and one for each alone."""
    cheapest_ms, plan = study.costs_ms[0], study.plan
    sets = {
        "all 29": study.clock(),
        "the paper's seven": study.clock(PAPER_SEVEN),
        f"the {len(plan.features)} selected here": plan.features_ms,
    }
    sets |= {f"{name} alone": study.clock((name,)) for name in NAMES if not name[-1].isdigit() or name.endswith("1")}
    return [f"{words} | {ms:.3f} | {ms / cheapest_ms:.2f}" for words, ms in sets.items()]


def _correlations(study: Study) -> list[str]:
    """Return the matrix of the correlations of being right."""
    found = np.corrcoef(study.right.T.astype(float))
    named = zip(study.recording.models, found, strict=True)
    return [f"{model} | " + " | ".join(f"{one:.2f}" for one in row) for model, row in named]


def _alike(study: Study) -> list[str]:
    """Return what the two largest models give alone and averaged, and all together at best."""
    temperatures = fit_temperatures(study.recording)
    right, models = study.test.right("top1"), study.test.models
    logs = [
        log_softmax(logits.astype(np.float32), temperatures[model])
        for model, logits in zip(models[-2:], study.test.logits[-2:], strict=True)
    ]
    both = is_right(np.mean(logs, axis=0), study.test.classes, "top1")
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
    return [f"{words} | {size / 1e6:.1f} | {100 * size / TX2_BYTES:.2f} %" for words, size in rows.items()]


def _growth_bytes(family: Family) -> int:
    before = _resident_bytes()
    with loaded_models(family):
        return _resident_bytes() - before


def _resident_bytes() -> int:
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmRSS"))
    return int(line.split()[1]) * 1024
