"""Many devices, one repository of models: what is published, signed and read back."""
