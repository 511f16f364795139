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

MOST_CYCLES = 40
MOST_AT_ONCE = 0.2  # of the operations, in one cycle: the other channels must learn to replace the removed ones
LEAST_LEFT = 1 / 8  # of a layer's channels, so that no layer vanishes
BISECTIONS = 12  # steps of the search for a bound
CHANNEL_MULTIPLE, NARROW_LAYER = 4, 16  # more than 16 channels stay a multiple of four, which processors handle faster


MAKERS = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True, eq=False)
class PrunableNetwork:
    """A network to prune."""

    net: nn.Module
    example: Tensor  # an input for it, (n, ...)
    sample_batches: Sequence[Tensor]  # inputs on which activations are counted
    output_layers: Collection[nn.Module]  # their channels are the answers, so none is removed


def prune(network: PrunableNetwork, train: Callable[[nn.Module], None], share: float) -> int:
    """Prune a network in place, in cycles of training and pruning, and return the number of removed channels.

    train: fine-tunes the network. share: of the multiply-accumulates that is to stay. Raises CalibrationError if no
    channel can be removed.
    """
    net, example = network.net, network.example
    target_operations = share * count_operations(net, example)
    removed = 0
    for _ in range(MOST_CYCLES):
        train(net)
        scores = channel_scores(network)
        removed_now = prune_to(network, scores, target_operations) if scores else 0
        removed += removed_now
        if not removed_now or count_operations(net, example) <= target_operations:
            break
    if not removed:
        raise CalibrationError(
            "no channel can be removed: each is tied to the outputs, or its layer has the minimum width; use factorise"
        )
    return removed


def channel_scores(network: PrunableNetwork) -> list[tuple[nn.Module, Tensor]]:
    """Return how active channels are: the first layer of each group of layers with the same channels, and (channels,).

    A score is the share of images and places at which a channel is above zero, after a normalisation if one follows:
    an activation lets these values pass. Layers of which a sum is taken have the same channels, with their mean score.
    """
    net = network.net.eval()
    groups = list(_groups(network))
    outputs: dict[nn.Module, list[Tensor]] = {}

    def record_activity(layer: nn.Module, _inputs: object, output: Tensor) -> None:
        places = [side for side in range(output.ndim) if side != 1]
        outputs.setdefault(layer, []).append((output > 0).float().mean(places))

    hooks = [layer.register_forward_hook(record_activity) for group in groups for layer in _counted_layers(group)]
    device = next(net.parameters()).device
    with torch.no_grad():
        for batch in network.sample_batches:
            net(batch.to(device))
    for hook in hooks:
        hook.remove()
    scored = []
    for group in groups:
        score = torch.stack([torch.stack(outputs[layer]).mean(0) for layer in _counted_layers(group)]).mean(0).cpu()
        scored.append((group[0], score))
    return scored


def prune_to(
    network: PrunableNetwork, scores: Sequence[tuple[nn.Module, Tensor]], target: float, lowest: float = 0.0
) -> int:
    """Remove the channels that score below a bound, and return their number.

    Bisection finds the lowest bound, from `lowest` on, that leaves at most `target` operations, or all but MOST_AT_ONCE
    of them.
    """
    net, example = network.net, network.example
    target = max(target, (1 - MOST_AT_ONCE) * count_operations(net, example))
    names: Mapping[nn.Module, str] = {layer: name for name, layer in net.named_modules()}
    low, high = lowest, max(float(score.max()) for _, score in scores)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        trial = copy.deepcopy(net)
        remove(
            trial, example, [(trial.get_submodule(names[layer]), inactive(score, middle)) for layer, score in scores]
        )
        low, high = (low, middle) if count_operations(trial, example) <= target else (middle, high)
    return remove(net, example, [(layer, inactive(score, high)) for layer, score in scores])


def inactive(score: Tensor, bound: float) -> list[int]:
    """Return the indices of the channels whose score is at most the bound, the least active first.

    A share of LEAST_LEFT stays, and of layers with more than NARROW_LAYER channels a multiple of CHANNEL_MULTIPLE.
    """
    width = len(score)
    n_left = max(int((score > bound).sum()), 1, round(LEAST_LEFT * width))
    if width > NARROW_LAYER:
        n_left = -(-n_left // CHANNEL_MULTIPLE) * CHANNEL_MULTIPLE
    rows: list[int] = score.argsort(stable=True)[: max(0, width - n_left)].tolist()
    return rows


def remove(net: nn.Module, example: Tensor, channels_of: Sequence[tuple[nn.Module, Sequence[int]]]) -> int:
    """Remove channels from layers, and from all layers that read them; return how many. channels_of: their indices."""
    graph = _graph(net, example)
    for layer, rows in channels_of:
        if rows:
            pruner = graph.get_pruner_of_module(layer).prune_out_channels
            graph.get_pruning_group(layer, pruner, idxs=list(rows)).prune()
    return sum(len(rows) for _, rows in channels_of)


def count_operations(net: nn.Module, example: Tensor) -> int:
    """Return the number of multiply-accumulates for one input. example: inputs, (n, ...)."""
    return int(tp.utils.count_ops_and_params(net, example[:1].to(next(net.parameters()).device))[0])


def _graph(net: nn.Module, example: Tensor) -> tp.DependencyGraph:
    return tp.DependencyGraph().build_dependency(net, example.to(next(net.parameters()).device))


def _groups(network: PrunableNetwork) -> Iterator[list[nn.Module]]:
    """Yield groups of layers that have the same output channels, each in the order of the network."""
    graph = _graph(network.net, network.example)
    for group in graph.get_all_groups(ignored_layers=list(network.output_layers), root_module_types=[*MAKERS]):
        layers = [dep.target.module for dep, _ in group if graph.is_out_channel_pruning_fn(dep.handler)]
        yield list(dict.fromkeys(layer for layer in layers if isinstance(layer, (*MAKERS, *NORMS))))


def _counted_layers(group: Sequence[nn.Module]) -> list[nn.Module]:
    """Return the layers of a group whose activations are counted: its normalisations, or all if it has none."""
    norms = [layer for layer in group if isinstance(layer, NORMS)]
    return norms or list(group)
