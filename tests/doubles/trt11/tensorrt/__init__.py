"""A stand-in for TensorRT 11: it offers the names that `tables/11.json` lists and no others."""

from trt_double.offer import offer

globals().update(offer("11"))
del offer
