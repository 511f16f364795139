"""What a reload made different, in words."""

from __future__ import annotations

from jetsel.daemon.generation import Generation


def changes(before: Generation, following: Generation) -> list[str]:
    """Name what a reload made different."""
    changed = [
        f"[{key}]"
        for key in ("models", "policy", "policies", "log")
        if getattr(before.config, key) != getattr(following.config, key)
    ]
    for name, family in following.families.items():
        known = before.families.get(name)
        if known is None:
            changed.append(f"family {name} added")
            continue
        hashes = {m: model.manifest.sha256 for m, model in known.models.items()}
        changed += [f"model {m}" for m, model in family.models.items() if hashes.get(m) != model.manifest.sha256]
        changed += [f"model {m} removed" for m in known.models if m not in family.models]
        if family.calibration != known.calibration:
            changed.append(f"calibration of {name}")
    return changed + [f"family {name} removed" for name in before.families if name not in following.families]
