"""The parts of fitting, each a function of arrays: models, features, neighbours, soundness."""
