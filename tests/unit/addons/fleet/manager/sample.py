"""A fleet as its page shows it: forty devices, some drift, some fail, and one tells hostile words."""

from __future__ import annotations

from jetsel.addons.fleet.documents import Entry, PlannedFamily
from jetsel.addons.fleet.manager.planning import ExpectedResult, Proposal
from jetsel.addons.fleet.manager.status import DeviceStatus
from jetsel.addons.fleet.usage import Trial

HOSTILE = "<script>alert('x')</script>\x1b[2J\u202e" + "a" * 300
ENTRY = Entry(family="pets", version=2, sha256="2" * 64)


def page_of(devices: int) -> tuple[list[DeviceStatus], list[Proposal], dict[str, str]]:
    statuses, proposals = [], []
    for number in range(devices):
        name = f"device-{number:02d}"
        failed = Trial(serial=2, outcome="rolled-back", reason=HOSTILE)
        trial = failed if number % 7 == 0 else Trial(serial=2, outcome="installed")
        faults = (f"plan 2 rolled-back: {HOSTILE}",) if number % 7 == 0 else ()
        statuses.append(
            DeviceStatus(
                device=name, trial=trial, drift=number / 100, watts=4 + number / 10, seen_s=60.0, faults=faults
            )
        )
        models = ("small", "large")[: 1 + number % 2]
        planned = PlannedFamily(bundle=ENTRY, models=models, cascade=models)
        before = ExpectedResult(0.6 + number / 1000, 2.0 + number / 10, None, {"pets": ("small",)})
        after = ExpectedResult(0.7 + number / 500, 4.0 + number / 5, 10.0 + number, {"pets": models})
        proposals.append(
            Proposal(
                device=name,
                serial=2,
                families=(planned,),
                changes=number % 3 > 0,
                before=before,
                after=after,
                binds={"storage": 0.9},
            )
        )
    return statuses, proposals, {"usage/x/s-1.jsonl.gz": HOSTILE}
