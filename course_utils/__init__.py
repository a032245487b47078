"""Attention, from pencil to kernel: the code behind the notebooks.

Rooms: `attention` (the mathematics), `costs` (counts, and what is measured), `models` (small ones), `views` (figures
and widgets), `checks` (what an exercise must satisfy), `grading` (build and grade). Importing this package loads none.
"""

__version__ = "0.1.0"
