"""The command line: one file for each group of commands. Each command imports heavy modules only when it runs."""
