"""Whatever bytes come, decoding gives a photograph that agrees with its header, or one of two errors, no other."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from jetsel.errors import BadImageError, ImageTooLargeError
from tests.fuzz.mutations import image_mutation
from tests.fuzz.targets.images import run, seeds

Changes = list[tuple[float, bytes, int]]
mutations = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(max_size=4), st.integers(0, 4)), max_size=5)


def mutated(data: bytes, changes: Changes) -> bytes:
    for place, new, dropped in changes:
        at = int(place * len(data))
        data = data[:at] + new + data[at + dropped :]
    return data


@given(st.sampled_from(list(seeds())), mutations, st.integers(0, 9))
def test_mutated_files_with_wrong_and_with_right_checksums(data: bytes, changes: Changes, seed: int) -> None:
    mutate = image_mutation(lambda whole, _: mutated(whole, changes))
    with suppress(BadImageError, ImageTooLargeError):
        run(mutate(data, len(data) + 20, seed))
