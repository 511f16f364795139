"""Hypothesis strategies for every message of the protocol."""

from __future__ import annotations

from typing import get_args

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
st.register_type_strategy(str, TEXT)

PIXELS = st.builds(
    wire.Pixels, format=st.sampled_from(["bgr8", "rgb8", "gray8", "nv12"]), width=SIDES, height=SIDES, stride=SIDES
)
BOXES = st.builds(
    wire.Boxes,
    unit=st.sampled_from(["pixels", "shares"]),
    xywh=st.lists(st.lists(st.none() | NUMBERS, max_size=5), min_size=1, max_size=5),
)
WORDS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=99)
CLASSIFY = st.builds(
    wire.Classify,
    v=st.just(1),
    id=IDS,
    family=st.none() | IDS,
    top_k=st.integers(1, 1000),
    policy=st.none() | IDS,
    model=st.none() | IDS,
    deadline_ms=st.none() | st.floats(0, 3_600_000, exclude_min=True),
    on_doubt=st.sampled_from([None, "use", "refuse"]),
    explain=st.booleans(),
    pixels=st.none() | PIXELS,
    boxes=st.none() | BOXES,
)
REQUESTS = st.one_of(CLASSIFY, *(st.builds(kind, v=st.just(1), id=IDS) for kind in (wire.Status, wire.Reload)))

st.register_type_strategy(wire.Answer, st.builds(wire.Answer))  # what has a default keeps it
REPLIES = st.one_of(*(st.builds(kind) for kind in get_args(wire.Reply)))
