"""Attention, from pencil to kernel: the code behind the notebooks.

Rooms, each importing only from those before it: `attention` (the mathematics), `views` (figures and widgets),
`checks` (what an exercise must satisfy), `grading` (build and grade). Importing this package loads none of them.
"""

__version__ = "0.1.0"
