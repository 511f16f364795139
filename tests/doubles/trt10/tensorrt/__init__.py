"""A stand-in for TensorRT 10: it offers the names that `tables/10.json` lists and no others."""

from trt_double.offer import offer

globals().update(offer("10"))
del offer
