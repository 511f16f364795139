"""Every file of the fuzzer's corpus goes through its target without the fuzzer."""

import pytest

from tests.fuzz.catalogue import TARGETS, corpus, target, watched

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
