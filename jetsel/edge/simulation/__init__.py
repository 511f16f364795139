"""What deadlines, a network and models give together, simulated: MDInference's evaluation, and the owner's own."""
