"""Many candidates of one model, judged together: what the thesis's methods give at full strength."""
