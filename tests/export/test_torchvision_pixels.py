"""A pulled model sees the pixels that torchvision's own transforms would have shown it."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from PIL import Image

from jetsel.image import InputSpec, Photograph, model_input
from jetsel.zoo.published import import_torchvision, spec_of

torchvision = import_torchvision()

PRESETS = {
    "resized to 256, bilinear": ("mobilenet_v3_small", "IMAGENET1K_V1", 224),
    "resized to 232": ("resnet50", "IMAGENET1K_V2", 224),
    "bicubic": ("efficientnet_b0", "IMAGENET1K_V1", 224),
    "larger, not much cropped": ("inception_v3", "IMAGENET1K_V1", 299),
}
SIZES = [(375, 500), (1200, 1603), (100, 121), (225, 2001)]


@pytest.mark.parametrize("preset", PRESETS)
def test_pixels_are_within_one_level(preset: str) -> None:
    for size in SIZES:
        check(preset, size)


def check(preset: str, size: tuple[int, int]) -> None:
    name, weights, side_px = PRESETS[preset]
    theirs = torchvision.models.get_model_weights(name)[weights].transforms()
    spec = InputSpec(width_px=side_px, height_px=side_px, **spec_of(theirs))
    draw = np.random.default_rng(size)
    bgr = cv2.GaussianBlur(draw.integers(0, 256, (*size, 3), dtype=np.uint8), (0, 0), 1.0)
    bgr = cv2.normalize(bgr, None, 0, 255, cv2.NORM_MINMAX)
    expected = theirs(Image.fromarray(np.ascontiguousarray(bgr[:, :, ::-1]))).numpy()
    found = model_input(Photograph(bgr, size[1], size[0]), spec)[0]
    assert found.shape == expected.shape
    levels = np.abs(found - expected) * 255 * np.array(spec.std)[:, np.newaxis, np.newaxis]
    assert levels.max() <= 1.1
    assert levels.mean() <= 0.02
