"""Tables 1 and 2, Figures 1, 5, 6a and 8, and the paper's other claims, for one family, and derived for a TX2."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from calibration.measures import macro
from calibration.papers.tables import table
from calibration.papers.taylor.algorithm1 import optimum_votes
from calibration.papers.taylor.paying import energy, limits
from calibration.papers.taylor.readers import points
from calibration.papers.taylor.shown import Shown
from calibration.papers.taylor.study import Study
from calibration.papers.taylor.trials import Seen
from jetsel.features import PAPER_NAMES, PAPER_SEVEN


def figures(study: Study) -> Iterator[str]:
    """Give the tables of one family."""
    shown = Shown(study)
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
    yield table(f"{counted}: Figure 8, {over}", columns, _figure_8(shown, geometric=over.startswith("geometric")))
    yield table(f"{counted}: claims", "claim (section) | the paper | chain-paper | chain | cascade", _claims(shown))


def derived(study: Study) -> Iterator[str]:
    """Give what policies would take on a TX2, derived from published times and watts of models given by rank."""
    board = study.on_a_tx2()
    shown, counted = Shown(board), f"{study.family.name}, {len(study.right)} images, with a TX2's times: derived"
    columns = "policy | ms | of the best single's | top-1 % | top-5 % | precision % | recall % | F1 %"
    yield table(f"{counted}: Figure 8", columns, _figure_8(shown, geometric=True))
    yield table(f"{counted}: claims", "claim (section) | the paper | chain-paper | chain | cascade", _claims(shown))
    yield limits(shown, f"{counted}: what a premodel that skips the first rung may take")
    yield energy(shown, f"{counted}: energy")


def _figure_8(shown: Shown, *, geometric: bool) -> list[str]:
    """Return a row for each model, policy and the oracle."""
    study, n = shown.study, len(shown.study.right)
    costs, answers = study.costs_ms, study.recording.logits.argmax(axis=2)
    top5, best = study.recording.is_among_best(5), int(study.right.mean(axis=0).argmax())
    oracle = np.where(study.right, costs, np.inf).argmin(axis=1)
    always = {model: np.full(n, place) for place, model in enumerate(study.recording.models)}
    listed = {
        name: (answers[column, np.arange(n)], top5[np.arange(n), column], costs[column])
        for name, column in {**always, "the oracle": oracle}.items()
    }
    for name, seen in shown.seen.items():
        choice_ms = shown.chooser_ms[name] - shown.features_ms.get(name, 0.0)
        listed[name] = seen.answered, seen.is_top5, seen.time_ms + choice_ms
    parts = [study.fold_of == fold for fold in np.unique(study.fold_of)] if geometric else [np.ones(n, bool)]
    rows = []
    for name, (answered, is_top5, time_ms) in listed.items():
        found = []
        for part in parts:
            classes, said = study.recording.classes[part], answered[part]
            scores = macro(classes, said)
            found.append([time_ms[part].mean(), (classes == said).mean(), is_top5[part].mean(), *scores])
        ms, *shares = np.exp(np.log(found).mean(axis=0))
        of_best = ms / costs[best]
        rows.append(f"{name} | {ms:.2f} | {of_best:.2f} | " + " | ".join(f"{100 * one:.1f}" for one in shares))
    return rows


def _claims(shown: Shown) -> list[str]:
    """Return a row for each claim of section 5.1 and 5.5 that is one number."""
    study = shown.study
    right, costs = study.right, study.costs_ms
    best, some = int(right.mean(axis=0).argmax()), right.any(axis=1)
    optimum = np.where(right, costs, np.inf).argmin(axis=1)

    def row(claim: str, paper: str, of: Callable[[str, Seen], str]) -> str:
        return f"{claim} | {paper} | " + " | ".join(of(name, seen) for name, seen in shown.seen.items())

    def share(each: NDArray[np.bool_]) -> str:
        return f"{100 * each.mean():.1f} %"

    always = f"the model named is the optimum (5.1); always {study.recording.models[0]}: {share(optimum[some] == 0)}"
    return [
        row(always, "95.6 %", lambda _, seen: share((seen.column == optimum)[some])),
        row(
            "top-1 beside the best single, points (5.1)",
            "+7.52",
            lambda _, seen: points(seen.correct.astype(float) - right[:, best]),
        ),
        row(
            "time of the best single over its own (5.1)",
            "1.8",
            lambda name, seen: f"{costs[best] / shown.whole_ms(name, seen):.2f}",
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
            lambda name, seen: f"{100 * shown.chooser_ms[name] / shown.whole_ms(name, seen):.1f} %",
        ),
        row(
            f"{study.recording.models[0]}'s time over that of choosing (5.1)",
            "3",
            lambda name, _: f"{costs[0] / ms:.2f}" if (ms := shown.chooser_ms[name]) else "-",
        ),
    ]


def _table_1(study: Study) -> list[str]:
    """Return the first test image that all get right, one beyond the cheapest, and one for the largest alone."""
    top1, top5, models = study.test.right, study.test.is_among_best(5), study.test.models
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
    sets |= {
        f"{name} alone": study.clock((name,)) for name in PAPER_NAMES if not name[-1].isdigit() or name.endswith("1")
    }
    return [f"{words} | {ms:.3f} | {ms / cheapest_ms:.2f}" for words, ms in sets.items()]
