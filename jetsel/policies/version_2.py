"""Calibrations as jetsel 1 wrote them (version 2): their fields by policy, and their arrays' names of today."""

from __future__ import annotations

import re
from typing import Any

from jetsel.policies.registry import GONE

_ARRAYS = {"embeddings": "embedding.points"}
_TREES = re.compile(r"trees_([a-z0-9]+)_([a-z]+)")


def today(facts: dict[str, Any], criteria: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the facts and the policies' parts, as plain JSON values. What policies that went left is dropped."""
    facts = dict(facts)
    links = {criterion: list(facts["model_sha256"]) for criterion in criteria} | facts.pop("links", {})
    parts: dict[str, Any] = {
        "chain": {"links": links, "soundness": facts.pop("soundness", {})},
        "cascade": {"rungs": facts.pop("cascades")},
    }
    for policy, field, name in (
        ("cascade-averaged", "averaged", "rungs"),
        ("embedding", "embedding", "weighings"),
        ("boosted", "boosted", "weighings"),
    ):
        if by_criterion := facts.pop(field, {}):
            parts[policy] = {name: by_criterion}
    facts.pop("skip", None)  # of cascade-skipping
    for results in facts["figures"].values():
        for gone in GONE:
            if isinstance(results, dict):
                results.pop(gone, None)
    return facts, parts


def name_today(array: str) -> str | None:
    """Return what an array is called today; None for one of a policy that went."""
    if array.startswith("sure_"):  # of cascade-skipping
        return None
    trees = _TREES.fullmatch(array)
    return f"boosted.{trees[1]}.{trees[2]}" if trees else _ARRAYS.get(array, array)
