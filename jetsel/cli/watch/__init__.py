"""`jetsel watch`: cameras; a file for what runs, and one for how it ends."""
