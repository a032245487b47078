"""How long an answer may work, in the notebook and in grading: all limits in seconds of processor time, in one place.

The limits of grading follow from that of the notebook, so that what a check accepts there is no timeout when graded.
"""

from __future__ import annotations

ANSWER_SECONDS = 20.0  # one check in a notebook; the slowest check of the course's own answers takes 3

# One cell in grading, which holds an answer, its check, or its check on hidden inputs. The hidden inputs are up to
# 1.6 times the work of the visible ones, and a grading kernel may be slower than the learner's.
GRADED_SECONDS = 3 * ANSWER_SECONDS
IDLE_SECONDS = GRADED_SECONDS  # by the clock: what such a cell may sleep
NOTEBOOK_SECONDS = 10 * GRADED_SECONDS  # all cells of a notebook together, in all of its kernels
KERNEL_SECONDS = 2 * NOTEBOOK_SECONDS  # one kernel, counted by the system itself

DUEL_SECONDS = GRADED_SECONDS  # all implementations that a learner's test calls, in the grader's process
TRIAL_SECONDS = 4.0  # more of it with each implementation that the test has judged: there are up to 200 in all
MOST_DUEL_SECONDS = 4_000.0  # the grader's process, for a duel that is run twice; its own limits end it before
# The grader's process, for the rest of a submission.
WORKER_SECONDS = 3 * DUEL_SECONDS

WALL = 12  # times a limit, by the clock: where work cannot be told from waiting, and as a last limit
