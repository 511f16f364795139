"""What is trained on the owner's machine, from the owner's photographs."""
