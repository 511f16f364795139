"""The features that learned choosers read: 35 cheap numbers of an image, by name; 29 are of Taylor et al., Table 2.

Most are computed at a working resolution, by default at most 4096 pixels: 64 x 64, the input size of the starter
family. `jetsel.features.shrink` explains how and why.
"""

from jetsel.features.shrink import WORKING_PX
from jetsel.features.table import KINDS, NAMES, PAPER_NAMES, PAPER_SEVEN, SIZE, extract, table_hash
from jetsel.features.view import View

__all__ = [
    "KINDS",
    "NAMES",
    "PAPER_NAMES",
    "PAPER_SEVEN",
    "SIZE",
    "WORKING_PX",
    "View",
    "extract",
    "table_hash",
]
