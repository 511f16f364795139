"""Record every model of a family on every image, once, in one file that can be resumed, extended and read back."""
