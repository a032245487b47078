"""All limits in seconds, in one place: how long an answer may work, and how long the course waits for something.

Work is processor time. The limits of grading follow from that of the notebook, so that what a check accepts there is no
timeout when graded. Pauses between two looks at something are no limits and stand where the look is taken.
"""

from __future__ import annotations

import sys
import time

NATIVE_LOOP_SECONDS = 0.006  # of `_slowdown`'s loop, in CPython on a laptop


def _slowdown() -> float:
    """Return how many times slower than in a kernel Python is in this web page, by the fastest of three loops.

    It is 1 elsewhere, and at most 8: while a page loads, a loop may wait for a processor.
    """
    if sys.platform != "emscripten":
        return 1.0
    took = []
    for _ in range(3):
        began = time.perf_counter()
        sum(i * i for i in range(100_000))
        took.append(time.perf_counter() - began)
    return min(max(min(took) / NATIVE_LOOP_SECONDS, 1.0), 8.0)


SLOWDOWN = _slowdown()

# A check in a notebook, in seconds of work.
# One check. The slowest of the course's own answers takes 3 in a kernel, and of those on pages 0.5, without a slowdown.
ANSWER_SECONDS = 20.0 if sys.platform != "emscripten" else 5.0 * SLOWDOWN
RETRY_SECONDS = ANSWER_SECONDS / 4  # the same once more, after the answer was stopped
STOP_AGAIN_SECONDS = 0.1  # until an answer that caught the stop is stopped again
SMALLEST_INPUT_SECONDS = 1.0 * SLOWDOWN  # the search for the smallest input on which an answer is wrong
SHORTEST_CALLS_SECONDS = 2.0 * SLOWDOWN  # the search for the shortest calls that break a promise
FEWER_CALLS_SECONDS = 0.5 * SLOWDOWN  # more of it, for leaving out calls that are not needed
STUCK = 1.5  # times the limit of such a search, for an answer that never returns

# One cell in grading, which holds an answer, its check, or its check on hidden inputs. The hidden inputs are up to
# 1.6 times the work of the visible ones, and a grading kernel may be slower than the learner's.
GRADED_SECONDS = 3 * ANSWER_SECONDS
IDLE_SECONDS = GRADED_SECONDS  # by the clock: what such a cell may sleep
HURRIED = 0.5  # times both, for the exercises left in a notebook where several ran out of time
NOTEBOOK_SECONDS = 10 * GRADED_SECONDS  # all cells of a notebook together, in all of its kernels
KERNEL_SECONDS = 2 * NOTEBOOK_SECONDS  # one kernel, counted by the system itself

DUEL_SECONDS = GRADED_SECONDS  # all implementations that a learner's test calls, in the grader's process
TRIAL_SECONDS = 4.0  # more of it with each implementation that the test has judged: there are up to 200 in all
ASKING_ON = 2  # times that, for a test that goes on asking when its implementations answer no more
CALLS_AHEAD_SECONDS = 0.05  # of making calls before the test asks for them, which it may never do
MAX_DUEL_SECONDS = 4_000.0  # the grader's process, for a duel that is run twice; its own limits end it before
# The grader's process, for the rest of a submission.
WORKER_SECONDS = 3 * DUEL_SECONDS

WALL = 12  # times a limit, by the clock: where work cannot be told from waiting, and as a last limit

# Kernels of the grader, by the clock of a machine that may be busy.
SERVER_START_SECONDS = 120.0  # until the process that kernels are forked from has imported what notebooks import
SERVER_END_SECONDS = 10.0  # until that process has ended its kernels; then all are killed
# For a process to send its request: `REQUEST_SECONDS` of `sandbox/inside/forkserver.py`, which imports nothing of the
# course. `tests/sandbox/test_confinement.py` holds that they agree.
REQUEST_SECONDS = 10.0
FORK_SECONDS = 60.0  # until the server has forked a kernel, and bubblewrap has confined it
START_SECONDS = 60.0  # until a kernel answers; also the work of a cell that everybody is given
END_SECONDS = 30.0  # until a kernel has ended with all that it started
LOST_SECONDS = 3.0  # until the server reports the end of a process; decides only which message a flood gets
TRACEBACK_SECONDS = 1.0  # in which an interrupted cell may say where it was
REPLY_SECONDS = 5.0  # in which a kernel must take the answer to its question

# A Dask cluster that grades, by the clock.
CONNECT_SECONDS = 20  # until the scheduler answers
WORKERLESS_SECONDS = 60  # without any worker
DISCONNECT_SECONDS = 5  # for leaving the scheduler, which may be gone

# What a contributor or a learner waits for, by the clock.
BUILD_CELL_SECONDS = 600  # one cell when the course is built; a whole lesson takes half a minute
PEAK_MEMORY_SECONDS = 600  # a function whose memory is measured in a process of its own, unless its caller says more
DOWNLOAD_SECONDS = 20  # without a byte of the real model, before pip tries once more
