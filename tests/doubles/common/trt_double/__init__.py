"""What the doubles of tensorrt and pycuda share: a simulated board, its memory, and TensorRT's classes (Python 3.6)."""
