"""Models that were trained on together: what that costs them, and where their embeddings lie (Figures 3, 4 and 6)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.live import bootstrap
from calibration.papers.multiplexer.subject import Subject
from calibration.papers.tables import table
from jetsel.train.multiplexer.losses import distance

PAIRS = ("both right", "one right", "both wrong")
DRAWN = 500  # photographs in a picture


def accuracies(subject: Subject) -> str:
    """Return a table: each model before and after, on the test photographs."""
    names = [*subject.names, *(f"{name}-joint" for name in subject.names)]
    test = subject.recorded(subject.test, names, "test-together")
    right, rows = test.right("top1").astype(float), []
    for name in subject.names:
        before, after = (right[:, test.models.index(one)] for one in (name, f"{name}-joint"))
        gain, low, high = bootstrap(after - before)
        rows.append(
            f"{name} | {100 * before.mean():.2f} | {100 * after.mean():.2f} | {gain:+.2f} ({low:+.2f} to {high:+.2f})"
        )
    every = [right[:, [test.models.index(one) for one in group]].any(axis=1).mean() for group in (names[:3], names[3:])]
    rows.append(f"any of them | {100 * every[0]:.2f} | {100 * every[1]:.2f} | ")
    title = f"trained on together, contrastive loss times {subject.contrast:g}, {len(right)} test photographs"
    return table(title, "model | before, top-1 % | after | points", rows)


@dataclass(frozen=True, eq=False)
class Embedded:
    """Projected embeddings (n, N, d) of test photographs, and which model was right on which, (n, N)."""

    names: tuple[str, ...]
    projected: NDArray[np.float32]
    right: NDArray[np.bool_]


def embeddings(subject: Subject) -> Embedded:
    """Return where the models of a subject, whose part was done before, put the test photographs."""
    from jetsel.cli.joint_training import joint_of
    from jetsel.cli.progress import Output
    from jetsel.train.optimize.photographs import pixels

    subject.prepare(None)
    with Output(quiet=True) as output:
        together = joint_of(subject.calibrations(), subject.names, subject.jointly, output)
    names = list(together.models)
    recording = subject.recorded(subject.test, names, "test-right")
    calibrations = subject.calibrations()
    family, _ = calibrations.served()
    limits = calibrations.job(subject.folder, subject.test).limits
    levels, _ = pixels([Path(one) for one in recording.paths], together.spec, limits, family.decode_px, output.step)
    order = [recording.models.index(name) for name in names]
    return Embedded(together.models, together.projected(levels, names), recording.right("top1")[:, order])


def pictures(found: dict[str, Embedded], work: Path) -> str:
    """Draw both by t-SNE, and return how far pairs of embeddings are apart, by who is right."""
    from matplotlib import pyplot
    from sklearn.manifold import TSNE

    rows = []
    figure, axes = pyplot.subplots(1, len(found), figsize=(6 * len(found), 6))
    for (name, one), axis in zip(found.items(), np.atleast_1d(axes), strict=True):
        rows += [f"{name} | {pair} | {words}" for pair, words in zip(PAIRS, _apart(one), strict=True)]
        drawn = np.random.default_rng(2020).permutation(len(one.right))[:DRAWN]
        points = TSNE(random_state=2020, init="pca").fit_transform(
            one.projected[drawn].reshape(-1, one.projected.shape[2])
        )
        count = one.right[drawn].sum(axis=1)
        kinds = np.where(one.right[drawn], np.where(count == len(one.names), 1, 2)[:, None], 0)
        for kind, words in enumerate(("wrong", "right, as all are", "right, and another is not")):
            rows_of = kinds.ravel() == kind
            axis.scatter(*points[rows_of].T, s=6, label=words)
        axis.set_title(name.replace("joint-without", "without the contrastive loss").replace("joint", "with it"))
        axis.legend()
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(work / "tsne.png", dpi=80)
    return table(
        "Distances of projected embeddings, (1 - cos) / 2", "trained | pair | mean, standard deviation, pairs", rows
    )


def _apart(one: Embedded) -> list[str]:
    projected, right = torch.from_numpy(one.projected), one.right
    apart = distance(projected[:, :, None], projected[:, None, :]).numpy()
    upper = np.triu(np.ones(apart.shape[1:], bool), 1)
    sums = (right[:, :, None].astype(int) + right[:, None, :])[:, upper]
    values = apart[:, upper]
    return [f"{values[sums == k].mean():.3f}, {values[sums == k].std():.3f}, {(sums == k).sum()}" for k in (2, 1, 0)]
