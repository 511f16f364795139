"""The neural multiplexer of Eshratifar and Pedram (2020): a small network that says which model to run."""
