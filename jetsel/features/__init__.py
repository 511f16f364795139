"""What the learned chooser looks at: 35 cheap numbers of a photograph, by name; 29 are of Taylor et al., Table 2.

The 29 are computed at a working resolution, by default at most 4096 pixels, the 64 x 64 of the starter family's
inputs: see `jetsel.features.shrink` for how and why.
"""

from jetsel.features.shrink import WORKING_PX
from jetsel.features.table import FEATURES, KINDS, NAMES, PAPER_NAMES, PAPER_SEVEN, SIZE, Feature, extract, table_hash
from jetsel.features.view import View

__all__ = [
    "FEATURES",
    "KINDS",
    "NAMES",
    "PAPER_NAMES",
    "PAPER_SEVEN",
    "SIZE",
    "WORKING_PX",
    "Feature",
    "View",
    "extract",
    "table_hash",
]
