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
MOST_AT_ONCE = 0.2  # of the operations: the remaining channels must learn to replace the removed ones
LEAST_LEFT = 1 / 8  # of a layer's channels, so that no layer vanishes
BISECTIONS = 12  # bisections of the bound
CHANNEL_MULTIPLE, NARROW_LAYER = 4, 16  # more than 16 channels stay a multiple of four, which processors handle faster


MAKERS = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


@dataclass(frozen=True, eq=False)
class PrunableNetwork:
    """A network to prune. example: an input of it, (n, ...). shown: batches on which activations are counted.

    last: layers whose outputs stay.
    """

    net: nn.Module
    example: Tensor
    sample_batches: Sequence[Tensor]
    output_layers: Collection[nn.Module]


def prune(network: PrunableNetwork, train: Callable[[nn.Module], None], share: float) -> int:
    """Prune a network in place, in cycles, and return the number of removed channels.

    train: trains the network. share: of the multiply-accumulates that stays; the bound below which channels are removed
    rises until it is reached. Raises CalibrationError if no channel can be removed.
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
    """Return the first layer of each group of layers with shared channels, and the channels' scores.

    A score is the share of images and places at which a channel is above zero, after a normalisation if one follows:
    an activation lets these values pass. Channels that a sum ties together share their mean score.
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
    """Remove the channels below the lowest bound that leaves `due` operations, and return their number.

    No more than MOST_AT_ONCE of the operations are removed. Bisection finds the bound. least: the lowest to try.
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
    """Return the channels of a layer whose score is at most the bound, the least active first.

    A share of LEAST_LEFT stays, and of layers with more than NARROW channels a multiple of TOGETHER.
    """
    width = len(score)
    n_left = max(int((score > bound).sum()), 1, round(LEAST_LEFT * width))
    if width > NARROW_LAYER:
        n_left = -(-n_left // CHANNEL_MULTIPLE) * CHANNEL_MULTIPLE
    rows: list[int] = score.argsort(stable=True)[: max(0, width - n_left)].tolist()
    return rows


def remove(net: nn.Module, example: Tensor, channels_of: Sequence[tuple[nn.Module, Sequence[int]]]) -> int:
    """Remove channels from layers, and from all layers that read them; return their number."""
    graph = _graph(net, example)
    for layer, rows in channels_of:
        if rows:
            pruner = graph.get_pruner_of_module(layer).prune_out_channels
            graph.get_pruning_group(layer, pruner, idxs=list(rows)).prune()
    return sum(len(rows) for _, rows in channels_of)


def count_operations(net: nn.Module, example: Tensor) -> int:
    """Return the multiply-accumulates for one input."""
    return int(tp.utils.count_ops_and_params(net, example[:1].to(next(net.parameters()).device))[0])


def _graph(net: nn.Module, example: Tensor) -> tp.DependencyGraph:
    return tp.DependencyGraph().build_dependency(net, example.to(next(net.parameters()).device))


def _groups(network: PrunableNetwork) -> Iterator[list[nn.Module]]:
    """Yield groups of layers that share their output channels, each in the order of the network."""
    graph = _graph(network.net, network.example)
    for group in graph.get_all_groups(ignored_layers=list(network.output_layers), root_module_types=[*MAKERS]):
        layers = [dep.target.module for dep, _ in group if graph.is_out_channel_pruning_fn(dep.handler)]
        yield list(dict.fromkeys(layer for layer in layers if isinstance(layer, (*MAKERS, *NORMS))))


def _counted_layers(group: Sequence[nn.Module]) -> list[nn.Module]:
    """Return the layers of a group whose outputs are counted: its normalisations, or all if it has none."""
    norms = [layer for layer in group if isinstance(layer, NORMS)]
    return norms or list(group)
