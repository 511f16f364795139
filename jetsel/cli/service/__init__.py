"""`jetsel install-service`: the units, where they go, what is run, and whether it then works."""
