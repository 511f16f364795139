"""What jetsel costs, measured beside a bare loop and another server: docs/benchmarks.md says how to read it."""

from tests.private import leave_the_machines_folders

leave_the_machines_folders()  # a family that is installed here would answer in place of the measured one
