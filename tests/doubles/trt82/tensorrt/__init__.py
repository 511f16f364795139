"""A stand-in for TensorRT 8.2: it offers the names that `tables/8.2.json` lists and no others."""

from trt_double.offer import offer

globals().update(offer("8.2"))
del offer
