"""Energy in the daemon: the meter's life, what each request took, totals, conditions, and the power budget."""
