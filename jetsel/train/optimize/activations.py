"""Prune by activations: remove channels that are seldom above zero, with the weights that compute and read them.

Çallı (2017), sections 2.2.2 and 2.2.3, after Hu et al. 2016: train, lock the weights, count, prune, and repeat.
torch-pruning removes the channels and follows them through sums, normalisations and flattening.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch_pruning as tp
from torch import Tensor, nn

from jetsel.base.errors import CalibrationError

Penalty = Callable[[nn.Module], Tensor]
Train = Callable[[nn.Module, Penalty], None]
Bound = tuple[nn.Module, Tensor]
"""A layer, and the score of each of its channels, (channels,)."""

MOST_CYCLES = 40
MOST_AT_ONCE = 0.2  # of the operations: the remaining channels must learn to replace the removed ones
LEAST_LEFT = 1 / 8  # of a layer's channels, so that no layer vanishes
TRIED = 12  # bisections of the bound
TOGETHER, NARROW = 4, 16  # more than 16 channels stay a multiple of four, which processors handle faster


class Rule:
    """The plain rule removes channels that are above zero at no more than `bound` of all places; subclasses vary it."""

    bound = 0.0

    def penalty(self, net: nn.Module) -> Tensor:  # noqa: ARG002  # other rules look at the weights
        """Return a term that training adds to the loss."""
        return torch.zeros(())

    def before_counting(self, net: nn.Module, draw: torch.Generator) -> None:
        """Change the weights before activations are counted."""

    def scores(self, shares: Tensor) -> Tensor:
        """Return the scores of a layer's channels; channels with at most the bound are removed. shares: (channels,)."""
        return shares


MAKERS = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True, eq=False)
class PrunableNetwork:
    """A network to prune. example: an input of it, (n, ...). shown: batches on which activations are counted.

    last: layers whose outputs stay.
    """

    net: nn.Module
    example: Tensor
    shown: Sequence[Tensor]
    last: Collection[nn.Module]


def prune(
    network: PrunableNetwork,
    rule: Rule,
    train: Train,
    *,
    share: float | None = None,
    least_left: float = LEAST_LEFT,
    seed: int = 0,
) -> int:
    """Prune a network in place, in cycles, and return the number of removed channels.

    train: trains the network with a penalty added to its loss. share: of the multiply-accumulates that stays; the bound
    rises until it is reached. None: the bound is fixed, and pruning ends when no channel is below it. Raises
    CalibrationError if no channel can be removed.
    """
    net, example, draw = network.net, network.example, torch.Generator().manual_seed(seed)
    begun = operations(net, example)
    went = 0
    for _ in range(MOST_CYCLES):
        train(net, rule.penalty)
        rule.before_counting(net, draw)
        scores = channel_scores(network, rule)
        if not scores:
            break
        if share is None:
            doomed = chosen(scores, rule.bound, least_left, even=False)
        else:
            due = max(share * begun, (1 - MOST_AT_ONCE) * operations(net, example))
            doomed = _risen(network, scores, rule.bound, least_left, due)
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


def channel_scores(network: PrunableNetwork, rule: Rule) -> list[Bound]:
    """Return the first layer of each group of layers with shared channels, and the channels' scores.

    A score is the share of images and places at which a channel is above zero, after a normalisation if one follows:
    an activation lets these values pass. Channels that a sum ties together share their mean score.
    """
    net = network.net.eval()
    groups = list(_groups(network))
    outputs: dict[nn.Module, list[Tensor]] = {}

    def keep(layer: nn.Module, _inputs: object, output: Tensor) -> None:
        places = [side for side in range(output.ndim) if side != 1]
        outputs.setdefault(layer, []).append((output > 0).float().mean(places))

    hooks = [layer.register_forward_hook(keep) for group in groups for layer in _counted_in(group)]
    device = next(net.parameters()).device
    with torch.no_grad():
        for batch in network.shown:
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

    least_left: smallest share of channels that stays; at least one does. even: keep a multiple of TOGETHER channels in
    layers with more than NARROW.
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
    """Remove channels from layers, and from all layers that read them."""
    graph = _graph(net, example)
    for layer, rows in doomed:
        if rows:
            way = graph.get_pruner_of_module(layer).prune_out_channels
            graph.get_pruning_group(layer, way, idxs=list(rows)).prune()


def operations(net: nn.Module, example: Tensor) -> int:
    """Return the multiply-accumulates for one input."""
    return int(tp.utils.count_ops_and_params(net, example[:1].to(next(net.parameters()).device))[0])


def _risen(
    network: PrunableNetwork, scores: Sequence[Bound], least: float, least_left: float, due: float
) -> list[list[int]]:
    """Return the channels below the lowest bound that leaves at most `due` operations, which bisection finds."""
    low, high = least, max(float(score.max()) for _, score in scores)
    for _ in range(TRIED):
        middle = (low + high) / 2
        tried = copy.deepcopy(network.net)
        names: Mapping[nn.Module, str] = {layer: name for name, layer in network.net.named_modules()}
        doomed = chosen(scores, middle, least_left)
        places = [tried.get_submodule(names[layer]) for layer, _ in scores]
        remove(tried, network.example, list(zip(places, doomed, strict=True)))
        low, high = (low, middle) if operations(tried, network.example) <= due else (middle, high)
    return chosen(scores, high, least_left)


def _graph(net: nn.Module, example: Tensor) -> tp.DependencyGraph:
    return tp.DependencyGraph().build_dependency(net, example.to(next(net.parameters()).device))


def _groups(network: PrunableNetwork) -> Iterator[list[nn.Module]]:
    """Yield groups of layers that share their output channels, each in the order of the network."""
    graph = _graph(network.net, network.example)
    for group in graph.get_all_groups(ignored_layers=list(network.last), root_module_types=[*MAKERS]):
        layers = [dep.target.module for dep, _ in group if graph.is_out_channel_pruning_fn(dep.handler)]
        yield list(dict.fromkeys(layer for layer in layers if isinstance(layer, (*MAKERS, *NORMS))))


def _counted_in(group: Sequence[nn.Module]) -> list[nn.Module]:
    """Return the layers of a group whose outputs are counted: its normalisations, or all if it has none."""
    norms = [layer for layer in group if isinstance(layer, NORMS)]
    return norms or list(group)
