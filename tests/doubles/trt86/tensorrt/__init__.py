"""A stand-in for TensorRT 8.6: it offers the names that `tables/8.6.json` lists and no others."""

from trt_double.offer import offer

globals().update(offer("8.6"))
del offer
