"""The command line: one file for each group of commands; what is heavy is imported by the command that needs it."""
