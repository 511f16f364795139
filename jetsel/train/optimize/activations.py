"""Prune by activations: channels that are seldom above zero go, and with them what computes and what reads them.

Çallı (2017), sections 2.2.2 and 2.2.3, after Hu et al. 2016: train, lock the weights, count, prune, and again. The
surgery is torch-pruning's, which follows a channel through sums, normalisations and flattening.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import torch
import torch_pruning as tp
from torch import Tensor, nn

from jetsel.base.errors import CalibrationError

Penalty = Callable[[nn.Module], Tensor]
Train = Callable[[nn.Module, Penalty], None]
Bound = tuple[nn.Module, Tensor]
"""A layer, and how active each of its channels is, (channels,)."""

MOST_CYCLES = 40
MOST_AT_ONCE = 0.2  # of the operations: what is left has to learn what went
LEAST_LEFT = 1 / 8  # of a layer's channels, for a network that is to keep its depth
TRIED = 12  # halvings of the bound's interval
TOGETHER, NARROW = (
    4,
    16,
)  # channels stay in fours if there are more than 16: processors take several at a time


class Rule:
    """The plain rule: channels go that are above zero on at most `bound` of all places. Others change how they idle."""

    bound = 0.0

    def penalty(self, net: nn.Module) -> Tensor:  # noqa: ARG002  # other rules look at the weights
        """Return what training adds to the loss."""
        return torch.zeros(())

    def before_counting(self, net: nn.Module, draw: torch.Generator) -> None:
        """Change the weights before activations are counted."""

    def scores(self, shares: Tensor) -> Tensor:
        """Return the scores of a layer's channels, of which those at most at the bound go. shares: (channels,)."""
        return shares


MAKERS = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


def prune(
    net: nn.Module,
    example: Tensor,
    rule: Rule,
    train: Train,
    shown: Sequence[Tensor],
    last: Collection[nn.Module],
    *,
    share: float | None = None,
    least_left: float = LEAST_LEFT,
    seed: int = 0,
) -> int:
    """Prune in place, in cycles, and return how many channels went.

    example: (n, ...) as the network takes it. train: trains the network with a penalty added to its loss. shown:
    batches on which activations are counted. last: layers whose outputs stay. share: of the multiply-accumulates to
    stay; the bound rises until so few do. None: the bound stands, and it ends when nothing goes. Raises
    CalibrationError if nothing can go at all.
    """
    draw = torch.Generator().manual_seed(seed)
    begun = operations(net, example)
    went = 0
    for _ in range(MOST_CYCLES):
        train(net, rule.penalty)
        rule.before_counting(net, draw)
        scores = counted(net, example, shown, last, rule)
        if not scores:
            break
        if share is None:
            doomed = chosen(scores, rule.bound, least_left, even=False)
        else:
            due = max(share * begun, (1 - MOST_AT_ONCE) * operations(net, example))
            doomed = _risen(net, example, scores, rule.bound, least_left, due)
        gone = sum(map(len, doomed))
        went += gone
        remove(net, example, [(layer, rows) for (layer, _), rows in zip(scores, doomed, strict=True)])
        if not gone or (share is not None and operations(net, example) <= share * begun):
            break
    if not went and share is not None:
        raise CalibrationError(
            "no channel can be removed: each is tied to the outputs, or its layer has the minimum width; use factorise"
        )
    return went


def counted(
    net: nn.Module, example: Tensor, shown: Sequence[Tensor], last: Collection[nn.Module], rule: Rule
) -> list[Bound]:
    """Return each group's first layer and its channels' scores, by which those below a bound go.

    A score is the share of photographs and places at which a channel is above zero, of a normalisation if one
    follows: what an activation lets pass. Channels that sums tie together have the mean of theirs.
    """
    net.eval()
    groups = list(_groups(net, example, last))
    outputs: dict[nn.Module, list[Tensor]] = {}

    def keep(layer: nn.Module, _inputs: object, output: Tensor) -> None:
        places = [side for side in range(output.ndim) if side != 1]
        outputs.setdefault(layer, []).append((output > 0).float().mean(places))

    hooks = [layer.register_forward_hook(keep) for group in groups for layer in _counted_in(group)]
    device = next(net.parameters()).device
    with torch.no_grad():
        for batch in shown:
            net(batch.to(device))
    for hook in hooks:
        hook.remove()
    bounds = []
    for group in groups:
        score = torch.stack([torch.stack(outputs[layer]).mean(0) for layer in _counted_in(group)]).mean(0).cpu()
        bounds.append((group[0], rule.scores(score)))
    return bounds


def chosen(scores: Sequence[Bound], bound: float, least_left: float, *, even: bool = True) -> list[list[int]]:
    """Return for each layer the channels whose score is at most the bound, the least active first.

    `least_left` says how many stay, at least one; even: a multiple of four if there are more than 16.
    """
    units = []
    for _, score in scores:
        width = len(score)
        n_left = max(int((score > bound).sum()), 1, round(least_left * width))
        if even and width > NARROW:
            n_left = -(-n_left // TOGETHER) * TOGETHER
        units.append(score.argsort(stable=True)[: max(0, width - n_left)].tolist())
    return units


def remove(net: nn.Module, example: Tensor, doomed: Sequence[tuple[nn.Module, Sequence[int]]]) -> None:
    """Take channels out of layers, and of all that reads them."""
    graph = _graph(net, example)
    for layer, rows in doomed:
        if rows:
            way = graph.get_pruner_of_module(layer).prune_out_channels
            graph.get_pruning_group(layer, way, idxs=list(rows)).prune()


def operations(net: nn.Module, example: Tensor) -> int:
    """Return the multiply-accumulates of one input."""
    return int(tp.utils.count_ops_and_params(net, example[:1].to(next(net.parameters()).device))[0])


def _risen(
    net: nn.Module, example: Tensor, scores: Sequence[Bound], least: float, least_left: float, due: float
) -> list[list[int]]:
    """Return what goes under the lowest bound with which at most `due` operations stay, by halving."""
    low, high = least, max(float(score.max()) for _, score in scores)
    for _ in range(TRIED):
        middle = (low + high) / 2
        tried = copy.deepcopy(net)
        names: Mapping[nn.Module, str] = {layer: name for name, layer in net.named_modules()}
        doomed = chosen(scores, middle, least_left)
        places = [tried.get_submodule(names[layer]) for layer, _ in scores]
        remove(tried, example, list(zip(places, doomed, strict=True)))
        low, high = (low, middle) if operations(tried, example) <= due else (middle, high)
    return chosen(scores, high, least_left)


def _graph(net: nn.Module, example: Tensor) -> tp.DependencyGraph:
    return tp.DependencyGraph().build_dependency(net, example.to(next(net.parameters()).device))


def _groups(net: nn.Module, example: Tensor, last: Collection[nn.Module]) -> Iterator[list[nn.Module]]:
    """Yield the layers whose outputs are the same channels, the first of them first."""
    graph = _graph(net, example)
    for group in graph.get_all_groups(ignored_layers=list(last), root_module_types=[*MAKERS]):
        layers = [dep.target.module for dep, _ in group if graph.is_out_channel_pruning_fn(dep.handler)]
        yield list(dict.fromkeys(layer for layer in layers if isinstance(layer, (*MAKERS, *NORMS))))


def _counted_in(group: Sequence[nn.Module]) -> list[nn.Module]:
    """Return the layers of a group whose outputs tell: its normalisations, or if there are none all."""
    norms = [layer for layer in group if isinstance(layer, NORMS)]
    return norms or list(group)
