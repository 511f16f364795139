"""Record every model once, fit the policies that choose among the models, and replay policies on the recording."""
