"""What `jetsel doctor` looks at: one file for each part of the installation, one function for each section."""
