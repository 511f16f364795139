"""The agent of one device: installs the models of its plan, tests them, and reports the state of the device."""
