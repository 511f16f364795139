"""MODI (Ogden and Guo, HotEdge 2018) with our models: storage, Figure 3 and Figure 4."""
