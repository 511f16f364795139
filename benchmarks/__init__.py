"""What jetsel costs, measured beside a bare loop and another server: docs/benchmarks.md says how to read it."""
