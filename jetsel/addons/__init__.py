"""What the core can be read without: cameras and the fleet. Nothing of the core imports an add-on."""
