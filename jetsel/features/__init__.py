"""What the learned chooser looks at: 29 cheap numbers of a photograph (Taylor et al., Table 2), by name.

The features are computed at a working resolution, by default at most 4096 pixels, the 64 x 64 of the starter family's
inputs: see `jetsel.features.shrink` for how and why.
"""

from jetsel.features.shrink import WORKING_PX
from jetsel.features.table import FEATURES, NAMES, PAPER_SEVEN, Feature, extract, table_hash
from jetsel.features.view import View

__all__ = ["FEATURES", "NAMES", "PAPER_SEVEN", "WORKING_PX", "Feature", "View", "extract", "table_hash"]
