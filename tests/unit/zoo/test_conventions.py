"""Each convention of a framework is a valid input, whatever the size; its numbers are those of the framework."""

import numpy as np
import pytest

from jetsel.base.errors import ManifestError
from jetsel.image import Photograph
from jetsel.image.model_input import model_input
from jetsel.zoo.conventions import CONVENTIONS, convention_spec

GREY = Photograph(np.full((300, 400, 3), (10, 100, 200), np.uint8), 400, 300)  # blue, green, red
FIRST = {  # of the input's channels at that colour, as the frameworks' own functions compute them
    "ultralytics": [200 / 255, 100 / 255, 10 / 255],
    "torchvision": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "timm": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "keras": [10 - 103.939, 100 - 116.779, 200 - 123.68],
    "keras-tf": [200 / 127.5 - 1, 100 / 127.5 - 1, 10 / 127.5 - 1],
    "keras-torch": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "keras-levels": [200, 100, 10],
    "teachable-machine": [200 / 127.5 - 1, 100 / 127.5 - 1, 10 / 127.5 - 1],
    "paddle": [(200 / 255 - 0.485) / 0.229, (100 / 255 - 0.456) / 0.224, (10 / 255 - 0.406) / 0.225],
    "opencv": [10 / 255, 100 / 255, 200 / 255],
}


def test_each_convention_gives_the_numbers_of_its_framework() -> None:
    assert set(FIRST) == set(CONVENTIONS)
    for name, expected in FIRST.items():
        batch = model_input(GREY, convention_spec(name, 64, 64))
        assert batch[0, :, 5, 5] == pytest.approx(expected, rel=1e-5, abs=1e-4), name


def test_the_share_that_is_cropped_follows_the_size() -> None:
    sides = [
        (name, convention_spec(name, px, px).resize_px) for name in ("torchvision", "timm") for px in (224, 240, 4096)
    ]
    assert [px for _, px in sides] == [256, 274, 4096, 256, 274, 4096]
    assert convention_spec("keras", 224, 192).resize_px is None
    assert convention_spec("torchvision", 320, 240).resize_px == 365


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ManifestError, match=r"no convention torchvison \(did you mean torchvision\?\): use one of "):
        convention_spec("torchvison", 224, 224)
