"""The sensors of boards and development machines, one file each, all with the same interface of rails."""
