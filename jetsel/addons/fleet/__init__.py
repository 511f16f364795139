"""A repository of models for many devices: published, signed, and read back."""
