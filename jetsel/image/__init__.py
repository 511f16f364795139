"""From bytes to image to model input: the only such code, bounded in bytes, pixels and memory."""

from jetsel.image.decode import decode, to_area
from jetsel.image.header import MeasuredImage, measure
from jetsel.image.limits import Limits, read_file
from jetsel.image.model_input import InputSpec, model_input
from jetsel.image.pixels import Photograph, Unit, crop, from_pixels, jpeg, pixels_of_box, smaller_size

__all__ = [
    "InputSpec",
    "Limits",
    "MeasuredImage",
    "Photograph",
    "Unit",
    "crop",
    "decode",
    "from_pixels",
    "jpeg",
    "measure",
    "model_input",
    "pixels_of_box",
    "read_file",
    "smaller_size",
    "to_area",
]
