"""A calibration as plain values: every field, and arrays that differ although their shapes do not."""

from __future__ import annotations

import msgspec

from jetsel.policies.calibration import Calibration
from jetsel.policies.plain import as_plain


def test_every_field_is_there_and_json_can_say_it(calibration: Calibration) -> None:
    plain = as_plain(calibration)
    assert tuple(plain) == calibration.__struct_fields__
    assert msgspec.json.decode(msgspec.json.encode(plain))["temperatures"] == {"small": 1.5, "middle": 1.25, "large": 1}
    assert plain["parts"]["chain"]["arrays"]["points"].startswith("float32 (4, 2), sha256 ")


def test_one_other_value_in_an_array_is_another_calibration(calibration: Calibration) -> None:
    right = calibration.right | {"top1": calibration.right["top1"].copy()}
    assert as_plain(msgspec.structs.replace(calibration, right=right)) == as_plain(calibration)
    right["top1"][0, 0] = False
    assert as_plain(msgspec.structs.replace(calibration, right=right)) != as_plain(calibration)
