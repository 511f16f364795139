"""The sensors of boards and development machines: each a file, all the same rails."""
