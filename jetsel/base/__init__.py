"""What every part uses: errors, settings, logs, and files that are swapped whole. Imports nothing else of ours."""
