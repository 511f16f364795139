"""Every file of the fuzzer's corpus goes through its target again, without the fuzzer."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jetsel.errors import BadImageError
from tests.fuzz.catalogue import CORPUS, TARGETS, corpus, target
from tests.fuzz.mutations import image_mutation, json_mutation
from tests.fuzz.outcome import Outcome, outcome_of
from tests.fuzz.watch import LONGEST_S, GreedyError, SlowError, watched

MOST_BYTES = 1_000_000  # of the corpus, which every checkout carries


def files() -> Iterator[tuple[str, Path]]:
    for name in TARGETS:
        for path in corpus(name):
            yield name, path


@pytest.mark.parametrize(
    ("name", "path"), list(files()), ids=lambda value: value.name[:12] if isinstance(value, Path) else value
)
def test_a_file_of_the_corpus_leads_to_no_finding(name: str, path: Path) -> None:
    data = path.read_bytes()
    assert len(data) <= target(name).MAX_BYTES
    watched(target(name).run)(data)


@pytest.mark.parametrize("name", TARGETS)
def test_what_a_target_begins_with_leads_to_no_finding(name: str) -> None:
    run = watched(target(name).run)
    for data in target(name).seeds():
        run(data)


def test_every_target_has_a_corpus_and_all_of_it_is_small() -> None:
    assert sorted(path.name for path in CORPUS.iterdir()) == list(TARGETS)
    assert all(list(corpus(name)) for name in TARGETS)
    assert sum(path.stat().st_size for _, path in files()) < MOST_BYTES


def test_what_counts_as_a_finding() -> None:
    def refuses(data: bytes) -> None:
        raise BadImageError("no image")

    def fails(data: bytes) -> None:
        raise KeyError(data)

    def dawdles(data: bytes) -> None:
        while time.thread_time() < ends_s:
            pass

    def hoards(data: bytes) -> None:
        bytes(1).ljust(peak_bytes + 320 * 2**20, b"\1")

    ends_s = time.thread_time() + LONGEST_S + 0.2
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # a test before may have taken much
    watched(refuses)(b"")
    for target_, finding in ((fails, KeyError), (dawdles, SlowError), (hoards, GreedyError)):
        with pytest.raises(finding):
            watched(target_)(b"")


def test_mutations_keep_what_they_change_whole() -> None:
    json_first = json_mutation(lambda data, _: data)
    image_first = image_mutation(lambda data, _: data)
    for name, mutate in (("frames", json_first), ("manifests", json_first), ("images", image_first)):
        run = watched(target(name).run)
        for data in target(name).seeds():
            for seed in range(20):
                run(mutate(data, 4096, seed))


def test_the_fuzzers_words_are_read() -> None:
    said = (
        "#2\tINITED cov: 28 ft: 36 corp: 5/2205b exec/s: 0 rss: 47Mb\nFINDING KeyError at a.py:3: 'x', see y\n"
        "#90\tDONE   cov: 31 ft: 40 corp: 8/2400b lim: 4096 exec/s: 9 rss: 50Mb\nDone 90 runs in 1 second(s)\n"
    )
    done = outcome_of(said, 0)
    assert done == Outcome(90, 31, 8, ("KeyError at a.py:3: 'x', see y",))
    died = outcome_of(said, -11)
    assert (done + died).runs == 180
    assert "status -11" in (done + died).findings[1]
    assert done.line("frames").startswith("frames: 90 executions, 31 edges, corpus of 8, 1 findings")


def test_what_the_fuzzer_needs_is_named_where_it_is_missing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "frames", "--runs", "50", "--findings", str(tmp_path / "found")]
    done = subprocess.run(command, cwd=CORPUS.parents[2], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        assert "frames: " in done.stdout
    else:
        assert "pip install 'jetsel[fuzz]'" in done.stderr
