"""The losses of Eshratifar and Pedram (2020), as they can be computed: sections II-A and II-B.

Taken literally they cannot. Equation (3) is a cosine similarity: it may be negative, where (2) has no logarithm, and is
large where a distance is small, so that (2) and (8) would push together what is to be apart. Here the distance is
(1 - cos) / 2, from 0 to 1. Two that are both right are not pulled nearer than CLIP, as the logarithm has no end; two of
which one is right are pushed apart at any distance. Equation (7) lacks its minus. N models, n photographs; d: the width
of the common space, which the paper calls 'the same dimension'.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812  # as all torch code reads

CLIP = 0.02
TINY = 1e-4  # of a distance: its logarithm stays finite


def distance(one: Tensor, other: Tensor) -> Tensor:
    """Return (1 - cos) / 2 of vectors (..., d), from 0 to 1: what (3) is meant to be."""
    return (1 - F.cosine_similarity(one, other, dim=-1)) / 2


def contrastive(projected: Tensor, right: Tensor) -> Tensor:
    """Return equation (2), the mean over photographs and ordered pairs of models in place of the sum.

    projected: (n, N, d), equation (1). right: (n, N) bool. Models that are both right come together, of one that is
    right and one that is not the two move apart, and where both are wrong nothing is said.
    """
    apart = distance(projected[:, :, None], projected[:, None, :])
    both = right[:, :, None] & right[:, None, :]
    one = right[:, :, None] ^ right[:, None, :]
    pairs = ~torch.eye(right.shape[1], dtype=torch.bool, device=right.device)
    told = apart.clamp(min=CLIP).log() * both.float() - (apart + TINY).log() * one.float()
    return told[:, pairs].mean()


def ensemble(weights: Tensor, likely: Tensor) -> Tensor:
    """Return equation (7) with its minus: the cross-entropy of the weighted mean of the models' probabilities.

    weights: (n, N), equation (6). likely: (n, N), what each model gives the true class.
    """
    return -(weights * likely).sum(1).clamp(min=1e-6).log().mean()


def distillation(features: Tensor, projected: Tensor) -> Tensor:
    """Return equation (8) with that distance: of the meta-features (n, d) from each projected embedding (n, N, d)."""
    return distance(features[:, None, :], projected).sum(1).mean()
