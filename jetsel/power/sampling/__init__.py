"""The sampler: a process of its own that reads the rails on a schedule into memory that the daemon maps."""
