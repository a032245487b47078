"""Build the notebooks from their sources, and the editions that a class gets."""

from course_utils import answer_key as answer_key  # first, because it spares later imports of nbformat a slow one
