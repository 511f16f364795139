"""The table of features: each one's name, unit and function, in the order of the vector that the chooser is given.

Taylor et al. (LCTES 2018, sections 3.4 to 3.4.3) name their candidates in Table 2 and speak of 30; the names give 29.
They do not say how any is computed: each function's docstring tells what is done here, and why if there is a choice.
The last six are not in the paper: they tell kinds of images, such as those of another camera, light or size.
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

# Raise it whenever a feature of any photograph may come out different although no name or unit changed: another
# threshold, limit, formula or working resolution. Artefacts fitted before are then refused instead of misread.
VERSION = "2"


# Of 10, 20 and 30 grey levels: counts at 30 agree best between photographs and their compressed 64 x 64 copies, few
# photographs have fewer than ten, and the fewest take the least time.
_detector = cv2.FastFeatureDetector.create(threshold=30, nonmaxSuppression=True)


@dataclass(frozen=True)
class Feature:
    """One number of a photograph: finite for every photograph, and a function of its pixels alone."""

    name: str
    unit: str
    function: Callable[[View], float]


def n_keypoints(view: View) -> float:
    """Count FAST-9 corners (Rosten and Drummond 2006): threshold 30 grey levels, non-maximum suppression.

    The paper names no detector; FAST is the cheapest one, and the count is what is asked for, no descriptors. None lie
    within three pixels of the border, so a photograph below 7 x 7 has none. Neighbours of equal strength suppress each
    other: the perfect corners of a drawing may count for nothing.
    """
    return len(_detector.detect(view.gray))


def avg_perceived_brightness(view: View) -> float:
    """Average sqrt(0.299 R^2 + 0.587 G^2 + 0.114 B^2) over the pixels.

    The paper does not define perceived brightness; this is Finley's HSP model, in which a saturated colour is brighter
    than the grey level says.
    """
    return view.perceived_moments.mean


def contrast(view: View) -> float:
    """Take the standard deviation of the grey levels: RMS contrast (Peli 1990).

    Chosen over Michelson's (max - min) / (max + min), which two pixels decide.
    """
    return view.gray_moments.deviation


def area_by_perim(view: View) -> float:
    """Divide the main object's area by its perimeter, both in pixels of the halved working photograph.

    `find_main_object` says which region that is: the largest that Otsu's threshold separates from the border. A disc
    gives a large value, a branched or ragged outline a small one. The whole photograph if nothing stands out.
    """
    return view.main_object.area_px / view.main_object.perimeter_px


def aspect_ratio(view: View) -> float:
    """Divide width by height of the upright box around the main object (as in area_by_perim)."""
    return view.main_object.width_px / view.main_object.height_px


def edge_length(index: int) -> Callable[[View], float]:
    """Return the share of all pixels that lie on edges of a length in bin index, 0 to 6.

    Edges are Canny's (150, 300 on the L1 norm of 3 x 3 Sobel responses); an edge is an 8-connected group of their
    pixels and its length is how many there are: at most 8, 16, 32, 64, 128, 256, or more. Pixels are counted rather
    than edges, since one pixel that joins two edges changes the number of edges more; and of all pixels rather than of
    those on edges, so that the seven add up to the density of edges, by which the paper explains them ("more edges lead
    to a more complex image"). Shares do not depend on how many pixels the working photograph has.
    """
    return lambda view: view.edge_lengths[index]


def edge_angle(index: int) -> Callable[[View], float]:
    """Return the share of the edge pixels whose edge runs at an angle in bin index, 0 to 6; 0 if there are no edges.

    Angles are of the edge itself, anticlockwise from the x axis, modulo 180 degrees: an edge between dark and bright
    is the same from either side. Bins are 25.7 degrees wide and the first starts at -9.6: a horizontal edge is in the
    first, a vertical one in the fourth. Shares of the edge pixels, so that they do not repeat the density of edges.
    """
    return lambda view: view.edge_angles[index]


def hue(index: int) -> Callable[[View], float]:
    """Return the share of all pixels that are coloured and have a hue in bin index, 0 to 6.

    HSV hue in bins of 51.4 degrees; the first starts at -21.4: red, orange to yellow, green, cyan, azure, blue,
    magenta. Pixels with a saturation or a value below 40 of 255 have no hue worth the name and are in no bin, so the
    seven add up to the share of coloured pixels.
    """
    return lambda view: view.hues[index]


FEATURES: tuple[Feature, ...] = (
    Feature("n_keypoints", "count", n_keypoints),
    Feature("avg_brightness", "grey level 0-255", lambda view: view.gray_moments.mean),
    Feature("brightness_rms", "grey level 0-255", lambda view: view.gray_moments.rms),
    Feature("avg_perceived_brightness", "brightness 0-255", avg_perceived_brightness),
    Feature("perceived_brightness_rms", "brightness 0-255", lambda view: view.perceived_moments.rms),
    Feature("contrast", "grey level 0-127.5", contrast),
    *(Feature(f"edge_length{i + 1}", "share of pixels", edge_length(i)) for i in range(7)),
    *(Feature(f"edge_angle{i + 1}", "share of edge pixels", edge_angle(i)) for i in range(7)),
    Feature("area_by_perim", "pixels of the halved photograph", area_by_perim),
    Feature("aspect_ratio", "width / height", aspect_ratio),
    *(Feature(f"hue{i + 1}", "share of pixels", hue(i)) for i in range(7)),
    # Of the image, or of the box in it, before it was decoded at a reduced scale.
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
"""What tells kinds of images apart and is not in the paper."""
PAPER_NAMES: tuple[str, ...] = tuple(name for name in NAMES if name not in KINDS)
"""The 29 of the paper's Table 2."""

# Table 4 of the paper: what its selection kept.
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
    """Return the named features of a photograph, (len(names),) float32, computing only what they need.

    bgr: (height, width, 3) uint8, at least 1 x 1. working_px, original_px: see View.
    Raises ValueError for another kind of array or an unknown name.
    """
    unknown = [name for name in names if name not in _BY_NAME]
    if unknown:
        raise ValueError(f"no feature is called {', '.join(unknown)}; the known ones are {', '.join(NAMES)}")
    view = View(bgr, working_px, original_px)
    return np.array([_BY_NAME[name].function(view) for name in names], np.float32)


def table_hash() -> str:
    """Return the sha256 (hex) of the table: its version, names and units, in order.

    An artefact that was fitted on features stores it, and is refused if it differs.
    """
    table = [VERSION, *([feature.name, feature.unit] for feature in FEATURES)]
    return hashlib.sha256(json.dumps(table).encode()).hexdigest()
