"""What a reload made different, in words."""

from __future__ import annotations

from msgspec import structs

from jetsel.config import Config
from jetsel.daemon.calibration import InUse
from jetsel.daemon.generation import Generation
from jetsel.premodel.plain import as_plain


def changes(before: Generation, following: Generation) -> list[str]:
    """Name what a reload made different."""
    changed = [
        f"[{key}]"
        for key in ("models", "policy", "policies", "log")
        if getattr(before.config, key) != getattr(following.config, key)
    ]
    if before.config.power.budget_w != following.config.power.budget_w:  # the rest of [power] waits for the next start
        changed.append("[power] budget_w")
    for name, family in following.families.items():
        known = before.families.get(name)
        if known is None:
            changed.append(f"family {name} added")
            continue
        hashes = {m: model.manifest.sha256 for m, model in known.models.items()}
        changed += [f"model {m}" for m, model in family.models.items() if hashes.get(m) != model.manifest.sha256]
        changed += [f"model {m} removed" for m in known.models if m not in family.models]
        if family.in_use.refused is not None:
            changed.append(f"calibration of {name} ({family.in_use})")
        elif _differ(known.in_use, family.in_use):
            changed.append(f"calibration of {name}")
    changed += [f"family {name} removed" for name in before.families if name not in following.families]
    return changed + _out_of_service(before, following)


def _out_of_service(before: Generation, following: Generation) -> list[str]:
    """Tell what was left out or does not run since the reload, and what is damaged although it runs on."""
    told = [f"left out: {line}" for line in following.broken if line not in before.broken]
    for name, family in following.families.items():
        known = before.families.get(name)
        for model, lane in family.driver.lanes.items():
            was = None if known is None else known.driver.lanes.get(model)
            if lane.engine is None and (was is None or was.engine is not None or was.unavailable != lane.unavailable):
                told.append(f"model {model} of {name} is unavailable: {lane.unavailable}")
        told += [f"weights of {model} are damaged, and it runs on: {why}" for model, why in family.damaged.items()]
        told += [words for words in family.instead if known is None or words not in known.instead]
    return told


def for_next_start(started: Config, now: Config) -> list[str]:
    """Name the sections that differ from those the daemon was started with; of [power] the budget does not wait."""
    power = structs.replace(now.power, budget_w=started.power.budget_w)
    pairs = {"server": (started.server, now.server), "host": (started.host, now.host), "power": (started.power, power)}
    return [section for section, (was, is_now) in pairs.items() if was != is_now]


def _differ(before: InUse, now: InUse) -> bool:
    """Whether another calibration is in use, or the reason why none is."""
    if before.calibration is None or now.calibration is None:
        return str(before) != str(now)
    return as_plain(before.calibration) != as_plain(now.calibration)
