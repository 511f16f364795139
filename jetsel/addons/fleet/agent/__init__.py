"""The agent of one device: has it hold what its plan says, tries that out, and tells how it fares."""
