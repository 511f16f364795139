"""Hypothesis strategies for every message of the protocol."""

from __future__ import annotations

from hypothesis import strategies as st

from jetsel import wire

TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # JSON in UTF-8 has no lone surrogates
IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COUNTS = st.integers(0, 2**53)
SIDES = st.integers(-(2**31), 2**31)
# What a field's type alone decides: JSON has no infinity, and numbers that every language reads end at 2**53.
st.register_type_strategy(float, NUMBERS)
st.register_type_strategy(int, COUNTS)

PIXELS = st.builds(
    wire.Pixels, format=st.sampled_from(["bgr8", "rgb8", "gray8", "nv12"]), width=SIDES, height=SIDES, stride=SIDES
)
CLASSIFY = st.builds(
    wire.Classify,
    v=st.just(1),
    id=IDS,
    family=st.none() | IDS,
    top_k=st.integers(1, 1000),
    policy=st.none() | IDS,
    model=st.none() | IDS,
    deadline_ms=st.none() | st.floats(0, 3_600_000, exclude_min=True),
    criterion=st.sampled_from(["top1", "top5"]),
    on_doubt=st.sampled_from([None, "use", "refuse"]),
    explain=st.booleans(),
    pixels=st.none() | PIXELS,
)
PLAIN = [st.builds(kind, v=st.just(1), id=IDS) for kind in (wire.Status, wire.Reload)]
REQUESTS = st.one_of(CLASSIFY, *PLAIN)

ANSWER = st.builds(
    wire.Answer,
    id=TEXT,
    probability=NUMBERS,
    top_k=st.lists(st.builds(wire.Ranked, label=TEXT, wnid=TEXT, probability=NUMBERS), max_size=3),
    ran=st.lists(
        st.builds(wire.Ran, model=TEXT, because=TEXT, confidence=NUMBERS, latency_ms=NUMBERS, batch=COUNTS), max_size=3
    ),
    stages_ms=st.builds(
        wire.Stages,
        queue=NUMBERS,
        decode=NUMBERS,
        features=st.none() | NUMBERS,
        choice=NUMBERS,
        inference=st.lists(NUMBERS, max_size=3),
        total=NUMBERS,
    ),
    energy_mj=st.none() | NUMBERS,
    energy_estimated=st.booleans(),
    out_of_conditions=st.lists(TEXT, max_size=2),
    width_px=COUNTS,
    height_px=COUNTS,
    explanation=st.none()
    | st.builds(
        wire.Explanation,
        features=st.none() | st.dictionaries(TEXT, NUMBERS, max_size=3),
        distance=st.none() | NUMBERS,
        steps=st.lists(TEXT, max_size=3),
        decoded_width_px=COUNTS,
        decoded_height_px=COUNTS,
        policy_because=st.none() | TEXT,
    ),
    **dict.fromkeys(("family", "label", "wnid", "model", "policy", "because"), TEXT),
)
FAILURE = st.builds(wire.Failure, v=st.just(1), id=st.none() | TEXT, code=TEXT, retry=st.booleans(), message=TEXT)
MODEL_STATUS = st.builds(
    wire.ModelStatus,
    name=TEXT,
    version=TEXT,
    state=TEXT,
    reason=st.none() | TEXT,
    runs=COUNTS,
    p50_ms=st.none() | NUMBERS,
)
FAMILY_STATUS = st.builds(
    wire.FamilyStatus,
    name=TEXT,
    classes=COUNTS,
    models=st.lists(MODEL_STATUS, max_size=2),
    policies=st.lists(TEXT, max_size=2),
    default_policy=st.dictionaries(TEXT, TEXT, max_size=2),
    because=TEXT,
    fallback=st.none() | TEXT,
    calibration=st.none() | TEXT,
)
MAYBE = st.none() | NUMBERS
REASON = st.none() | TEXT
MODEL_ENERGY = st.builds(wire.ModelEnergy, family=TEXT, model=TEXT, photographs=COUNTS, joules=MAYBE, mean_mj=MAYBE)
POLICY_ENERGY = st.builds(
    wire.PolicyEnergy,
    family=TEXT,
    policy=TEXT,
    answers=COUNTS,
    saved_reason=REASON,
    **dict.fromkeys(("joules", "mean_mj", "saved_j"), MAYBE),
)
JUDGED = st.builds(
    wire.EstimatesJudged,
    measured_s=NUMBERS,
    estimated_j=NUMBERS,
    answers=COUNTS,
    unestimated=COUNTS,
    **dict.fromkeys(("measured_j", "measured_half_j", "ratio"), MAYBE),
)
POWER_STATUS = st.builds(
    wire.PowerStatus,
    judged=JUDGED,
    dropped=st.lists(st.builds(wire.DroppedRail, name=TEXT, reason=TEXT), max_size=2),
    budget=st.none() | st.builds(wire.BudgetStatus, budget_w=NUMBERS, level=COUNTS, state=TEXT),
    models=st.lists(MODEL_ENERGY, max_size=2),
    policies=st.lists(POLICY_ENERGY, max_size=2),
    **dict.fromkeys(("watts", "mean_w", "idle_w", "rate_hz", "chooser_j", "chooser_share"), MAYBE),
    **dict.fromkeys(("reason", "idle_reason", "power_mode"), REASON),
    **dict.fromkeys(("total_of", "out_of_conditions"), st.lists(TEXT, max_size=2)),
)
STATUS_REPLY = st.builds(
    wire.StatusReply,
    v=st.just(1),
    uptime_s=NUMBERS,
    families=st.lists(FAMILY_STATUS, max_size=2),
    requests=st.dictionaries(TEXT, COUNTS, max_size=3),
    endpoints=st.lists(TEXT, max_size=2),
    broken=st.lists(TEXT, max_size=2),
    default_family=st.none() | TEXT,
    resident_mb=st.none() | NUMBERS,
    power=st.none() | POWER_STATUS,
    **dict.fromkeys(("id", "state", "version"), TEXT),
    **dict.fromkeys(("pid", "in_queue", "queued_bytes", "lost_replies"), COUNTS),
)
RELOADED = st.builds(wire.Reloaded, v=st.just(1), id=TEXT, changed=st.lists(TEXT, max_size=3))
REPLIES = ANSWER | FAILURE | STATUS_REPLY | RELOADED
