"""Grade the notebooks that students hand in, one notebook or those of a class.

`intake` finds the submissions and reads their answers, `reports` writes the results. In between, `run` does what
`course grade` asks for, `classroom` distributes the submissions, `grade` grades one submission, `notebook`
the notebook in it.
"""

from course_utils import answer_key as answer_key  # first, because it spares later imports of nbformat a slow one
