"""Every file of the fuzzer's corpus goes through its target without the fuzzer."""

import pytest

from tests.fuzz.catalogue import CORPUS, TARGETS, corpus, target, watched

MOST_BYTES = 1_000_000  # of the corpus, which every checkout carries

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", TARGETS)
def test_a_corpus_leads_to_no_finding(name: str) -> None:
    run = watched(target(name).run)
    paths = list(corpus(name))
    assert paths, "the corpus is empty"
    for path in paths:
        try:
            run(path.read_bytes())
        except Exception as error:
            raise AssertionError(f"{path.name} leads to {error!r}") from error


def test_every_target_has_a_corpus_and_all_of_it_is_small() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == list(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < MOST_BYTES
