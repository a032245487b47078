"""The mathematics: attention, from lists of numbers to a kernel for a GPU.

`lists`, `arrays` and `tensors` are scaled dot-product attention with one signature and the same steps, in plain Python,
NumPy and PyTorch. On them stand `scaling` (why 1/√d_k), `masks`, `multihead` with `rotary`, and `cache`. `tiled` is
attention without the matrix of scores, `traffic` counts the bytes that saves, `flash` is the same in Triton, and
`flash_decode` its form for decoding.
Import the module you want; importing this package loads none of them.
"""
