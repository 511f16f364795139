"""Which policy wins, by how much, and what it may promise."""
