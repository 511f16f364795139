"""`jetsel simulate` as a command."""

from __future__ import annotations

import json

import pytest

from tests.system.command import jetsel


def test_the_paper_s_experiments_are_one_object_with_its_numbers_beside_ours() -> None:
    found = json.loads(jetsel("simulate", "--json", "--requests", "50000").stdout)
    row = found["networks"]["residential"]["mdinference"]
    assert row["accuracy_pct"] == pytest.approx(row["paper"]["accuracy_pct"], abs=0.5)
    assert row["reliance_pct"] == pytest.approx(row["paper"]["reliance_pct"], abs=0.5)
    assert len(found["figure_8"]) == 20
    printed = jetsel("simulate", "--requests", "5000").stdout
    assert "Table IV: 250 ms, with duplication" in printed
    assert "82.39" in printed


def test_a_calibrated_family_under_a_network_of_one_s_own() -> None:
    options = ("--family", "starter", "--network", "normal:40,10", "--sla-ms", "60", "--policy", "mdinference")
    (row,) = json.loads(jetsel("simulate", *options, "--requests", "5000", "--json").stdout)["rows"]
    assert 50 < row["accuracy_pct"] < 70
    assert "mdinference" in jetsel("simulate", *options, "--requests", "5000").stdout


def test_what_is_wrong_is_said_with_what_there_is() -> None:
    for options, words in (
        (("--network", "normal:1", "--policy", "random"), "examples: university"),
        (("--network", "university", "--policy", "mdinferenc"), "did you mean mdinference?"),
        (("--family", "starter", "--device", "huge"), "the family has xs, s, m, l, xl"),
    ):
        done = jetsel("simulate", *options)
        assert done.returncode == 2
        assert words in " ".join(done.stderr.split())
