"""MDInference (Ogden and Guo, IC2E 2020): its simulation, and the ways of selecting that it compares itself with."""
