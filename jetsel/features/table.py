"""The table of features: name, unit and function of each, in the order of the vector that choosers read.

Taylor et al. (LCTES 2018, sections 3.4 to 3.4.3) speak of 30 candidates; their Table 2 names 29 and does not define
them. Each function's docstring gives the definition used here, and the reason for it. The last six are not in the
paper; they separate kinds of images, such as those of another camera, light or size.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from jetsel.features import kinds
from jetsel.features.shrink import WORKING_PX
from jetsel.features.view import View

# Raise it if the value of a feature may change while its name and unit do not: another
# threshold, limit, formula or working resolution. Older calibrations are then rejected instead of misread.
VERSION = "2"


# Compared with 10 and 20 grey levels: counts at 30 agree best between images and their compressed 64 x 64 copies, few
# images have fewer than ten, and fewer keypoints take less time.
_detector = cv2.FastFeatureDetector.create(threshold=30, nonmaxSuppression=True)


@dataclass(frozen=True)
class Feature:
    """One number that `function` computes from an image's pixels and size alone, finite for every image."""

    name: str
    unit: str
    function: Callable[[View], float]


def n_keypoints(view: View) -> float:
    """Count FAST-9 corners (Rosten and Drummond 2006): threshold 30 grey levels, non-maximum suppression.

    The paper names no detector; FAST is the cheapest, and only the count is needed. No corner lies within three pixels
    of the border, so an image below 7 x 7 has none. Neighbours of equal strength suppress each other, so that perfect
    corners of a drawing may not count.
    """
    return len(_detector.detect(view.gray))


def avg_perceived_brightness(view: View) -> float:
    """Return the mean of sqrt(0.299 R^2 + 0.587 G^2 + 0.114 B^2) over the pixels.

    The paper does not define perceived brightness. This is Finley's HSP model, in which a saturated colour is brighter
    than its grey level.
    """
    return view.perceived_moments.mean


def contrast(view: View) -> float:
    """Return the standard deviation of the grey levels: RMS contrast (Peli 1990).

    Michelson's (max - min) / (max + min) would depend on two pixels only.
    """
    return view.gray_moments.deviation


def area_by_perim(view: View) -> float:
    """Return the main object's area divided by its perimeter, both in pixels of the halved working image.

    `find_main_object` defines the object. A disc gives a large value, a branched or ragged outline a small one. If
    nothing stands out, the object is the whole image.
    """
    return view.main_object.area_px / view.main_object.perimeter_px


def aspect_ratio(view: View) -> float:
    """Return width / height of the main object's bounding box, see `find_main_object`."""
    return view.main_object.width_px / view.main_object.height_px


def edge_length(index: int) -> Callable[[View], float]:
    """Return the feature of bin `index`, 0 to 6: the share of all pixels that lie on edges of a length in this bin.

    Edges are Canny's (150, 300 on the L1 norm of 3 x 3 Sobel responses). An edge is an 8-connected group of edge
    pixels; its length is their number: at most 8, 16, 32, 64, 128, 256, or more. Pixels are counted, not edges, since
    one pixel that joins two edges changes the number of edges more. Shares are of all pixels, so that the seven add up
    to the density of edges, by which the paper explains them ("more edges lead to a more complex image"), and so that
    they do not depend on the size of the working image.
    """
    return lambda view: view.edge_lengths[index]


def edge_angle(index: int) -> Callable[[View], float]:
    """Return the feature of bin `index`, 0 to 6: the share of the edge pixels on edges with an angle in this bin.

    It is 0 if there are no edges. Angles are of the edge itself, anticlockwise from the x axis, modulo 180 degrees,
    whichever side is darker. Bins are 25.7 degrees wide and the first starts at -9.6: a horizontal edge is in the
    first, a vertical one in the fourth. Shares are of the edge pixels, so that they do not repeat the density of edges.
    """
    return lambda view: view.edge_angles[index]


def hue(index: int) -> Callable[[View], float]:
    """Return the feature of bin `index`, 0 to 6: the share of all pixels that are coloured with a hue in this bin.

    HSV hue in bins of 51.4 degrees; the first starts at -21.4: red, orange to yellow, green, cyan, azure, blue,
    magenta. Pixels with a saturation or value below 40 of 255 have no reliable hue and are in no bin, so the seven add
    up to the share of coloured pixels.
    """
    return lambda view: view.hues[index]


FEATURES: tuple[Feature, ...] = (
    Feature("n_keypoints", "count", n_keypoints),
    Feature("avg_brightness", "grey level 0-255", lambda view: view.gray_moments.mean),
    Feature("brightness_rms", "grey level 0-255", lambda view: math.hypot(*view.gray_moments)),
    Feature("avg_perceived_brightness", "brightness 0-255", avg_perceived_brightness),
    Feature("perceived_brightness_rms", "brightness 0-255", lambda view: math.hypot(*view.perceived_moments)),
    Feature("contrast", "grey level 0-127.5", contrast),
    *(Feature(f"edge_length{i + 1}", "share of pixels", edge_length(i)) for i in range(7)),
    *(Feature(f"edge_angle{i + 1}", "share of edge pixels", edge_angle(i)) for i in range(7)),
    Feature("area_by_perim", "pixels of the halved photograph", area_by_perim),
    Feature("aspect_ratio", "width / height", aspect_ratio),
    *(Feature(f"hue{i + 1}", "share of pixels", hue(i)) for i in range(7)),
    # Size of the image, or of the box in it, before it was decoded at a reduced scale.
    Feature("width", "log2 of pixels", lambda view: math.log2(view.width_px)),
    Feature("height", "log2 of pixels", lambda view: math.log2(view.height_px)),
    Feature("area", "log2 of pixels", lambda view: math.log2(view.width_px * view.height_px)),
    Feature("colourfulness", "grey levels", lambda view: kinds.colourfulness(view.small)),
    Feature("detail", "share of the energy of two octaves", lambda view: kinds.detail(view.middle)),
    Feature("noise", "grey levels", lambda view: kinds.noise(view.middle)),
)

NAMES: tuple[str, ...] = tuple(feature.name for feature in FEATURES)

SIZE: tuple[str, ...] = ("width", "height", "area")
KINDS: tuple[str, ...] = (*SIZE, "colourfulness", "detail", "noise")
"""Features that separate kinds of images and are not in the paper."""
PAPER_NAMES: tuple[str, ...] = tuple(name for name in NAMES if name not in KINDS)
"""The 29 features of the paper's Table 2."""

# The features that the paper selects (Table 4).
PAPER_SEVEN: tuple[str, ...] = (
    "n_keypoints",
    "avg_perceived_brightness",
    "hue1",
    "contrast",
    "area_by_perim",
    "edge_length1",
    "aspect_ratio",
)

_BY_NAME = {feature.name: feature for feature in FEATURES}


def extract(
    bgr: NDArray[np.uint8],
    names: Sequence[str] = NAMES,
    working_px: int = WORKING_PX,
    original_px: tuple[int, int] | None = None,
) -> NDArray[np.float32]:
    """Return the named features of an image, (len(names),) float32; compute only what they need.

    bgr: (height, width, 3) uint8, at least 1 x 1. working_px, original_px: see View. Raises ValueError for another kind
    of array or an unknown name.
    """
    unknown = [name for name in names if name not in _BY_NAME]
    if unknown:
        raise ValueError(f"no feature is called {', '.join(unknown)}; the known ones are {', '.join(NAMES)}")
    view = View(bgr, working_px, original_px)
    return np.array([_BY_NAME[name].function(view) for name in names], np.float32)


def table_hash() -> str:
    """Return the sha256 (hex) of VERSION, names and units. A calibration stores it, and is rejected if it differs."""
    table = [VERSION, *([feature.name, feature.unit] for feature in FEATURES)]
    return hashlib.sha256(json.dumps(table).encode()).hexdigest()
