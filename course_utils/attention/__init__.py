"""The mathematics: scaled dot-product attention three times, with one signature and the same steps in each.

`lists` is plain Python on 2-D lists, `arrays` is NumPy and `tensors` is PyTorch, both with any leading dimensions.
Import the module you want; importing this package loads none of them.
"""
