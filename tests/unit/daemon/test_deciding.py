"""Which policy decides about a request: the one that it names, or what its family has by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jetsel.base.config import Config
from jetsel.base.errors import BadRequestError, UnknownModelError, UnknownPolicyError
from jetsel.daemon.deciding import policy_for, why
from jetsel.daemon.family import ServedFamily, serve_family
from jetsel.policies.requirements import Requirements
from jetsel.runtime import Events
from jetsel.site.configured import configured
from jetsel.wire import Classify
from jetsel.zoo import scan
from tests.unit.daemon.families import calibrate, put_family


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return put_family(tmp_path / "cats", "cats", "s", "m", "l", sides_px=(4, 8, 6))


def served(folder: Path, **sections: Any) -> ServedFamily:
    config = Config(**sections)
    return serve_family(configured(scan([folder]).families["cats"], config, is_default=True), config, Events())


def asked(**fields: Any) -> Classify:
    return Classify(1, "a", **fields)


def test_a_request_for_what_is_not_there_is_told_what_is(folder: Path) -> None:
    family = served(folder)
    with pytest.raises(UnknownModelError, match=r"family cats has no model 'xl' \(did you mean l\?\): s, m, l"):
        policy_for(family, asked(model="xl"))
    with pytest.raises(UnknownPolicyError, match=r"no policy 'single:x'.*; it has single:s, single:m, single:l"):
        policy_for(family, asked(policy="single:x"))
    with pytest.raises(UnknownPolicyError, match=r"cats has no calibration, .*: make it with jetsel calibrate IMAGES"):
        policy_for(family, asked(policy="cascade"))
    with pytest.raises(UnknownPolicyError, match="send one of them"):
        policy_for(family, asked(policy="single:s", model="s"))


def test_what_a_request_requires_goes_with_it_and_with_nothing_that_it_names(folder: Path) -> None:
    calibrate(folder, "cats")
    family = served(folder)
    request = asked(least_accuracy=0.7, deadline_ms=50.0)
    policy = policy_for(family, request)
    assert isinstance(policy, Requirements)
    assert (policy.least_accuracy, policy.most_energy_mj) == (0.7, None)
    assert "requirements" in why(family, request, policy)
    for named in ({"model": "m"}, {"policy": "cascade"}):
        with pytest.raises(BadRequestError, match="without"):
            policy_for(family, asked(most_energy_mj=5.0, **named))


def test_a_cheaper_operating_point_is_explained(folder: Path) -> None:
    calibrate(folder, "cats")
    family = served(folder)
    point = family.policies["single:m"]
    assert "led from cascade to this operating point" in why(family, asked(), point)
    assert why(family, asked(), family.policies["cascade"]) == family.because
