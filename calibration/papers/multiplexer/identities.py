"""What the paper's own figures add up to: Table I counts the multiplexer, Table II does not."""

from __future__ import annotations

LOCAL, CLOUD = 0.68, 0.32  # Table I: of the photographs
MOBILE = {"GFLOPs": 0.299, "ms": 3.53, "mJ": 12.0}
EDGE = {"GFLOPs": 16.4, "ms": 13.1, "mJ": 110.0}
TOLD = {"GFLOPs": 5.75, "ms": 10.12, "mJ": 55.36}
SHARES = (0.1056, 0.188, 0.218, 0.148, 0.158, 0.1824)  # Table II, 'Called'
GFLOPS = (0.655, 0.299, 0.313, 4.08, 11.5, 16.4)
MS = (6.8, 3.0, 5.5, 8.9, 11.3, 11.8)


def identities() -> str:
    """Return a table of sums beside what the paper prints."""
    rows = []
    for unit in MOBILE:
        without = LOCAL * MOBILE[unit] + CLOUD * EDGE[unit]
        rows.append(("I", f"0.68 x {MOBILE[unit]:g} + 0.32 x {EDGE[unit]:g}, {unit}", without, TOLD[unit]))
        rows.append(("I", "the same, and the multiplexer on each photograph", without + MOBILE[unit], TOLD[unit]))
    flops = sum(share * one for share, one in zip(SHARES, GFLOPS, strict=True))
    ms = sum(share * one for share, one in zip(SHARES, MS, strict=True))
    rows += [("II", "called shares x GFLOPs", flops, 5.60), ("II", "called shares x ms", ms, 7.73)]
    rows += [("II", "the same and the multiplexer's 0.299 GFLOPs", flops + MOBILE["GFLOPs"], 5.60)]
    rows += [("II", "16.4 over Table I's 5.75: the text's 2.85", EDGE["GFLOPs"] / TOLD["GFLOPs"], 2.85)]
    rows += [("II", "16.4 over Table II's own 5.60", EDGE["GFLOPs"] / 5.60, 2.85)]
    lines = ["## The paper's figures", "", "| table | what | sum | the paper |", "|---|---|---:|---:|"]
    return "\n".join(
        [*lines, *(f"| {table} | {what} | {made:.3f} | {told:g} |" for table, what, made, told in rows), ""]
    )
