"""Grade what students send, one notebook or a class of them.

`intake` finds the submissions and reads their answers, `reports` writes what comes out. In between: `run` is what
`course grade` does, `classroom` shares the work out, `grade` takes one submission, `plugin` one notebook.
"""

from course_utils import authoring as authoring  # first: it spares all that read notebooks a slow import
