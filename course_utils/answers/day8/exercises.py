"""Day 8: the answers to its exercises, and the mistakes that people make in them."""

import numpy as np

from course_utils.checks.judge.exercise import Exercise, Mistake

# A delta step ---------------------------------------------------------------------------------------------------------


def stepped(read=lambda state, k: k @ state, error=lambda v, old, beta: beta * (v - old), write=np.outer,
            kept=lambda state, beta: state, key=lambda k: k):  # fmt: skip
    """delta_step with one step exchanged for a wrong one; every step not named is right."""

    def delta_step(state, k, v, beta):
        k = key(k)
        return kept(state, beta) + write(k, error(v, read(state, k), beta))

    return delta_step


def in_place(state, k, v, beta):
    state += beta * np.outer(k, v - k @ state)
    return state


DELTA_MISTAKES = (
    Mistake("added without reading", stepped(error=lambda v, old, beta: beta * v),
        "The value is added to what is there. The delta rule first reads what the key holds, and writes the difference."),
    Mistake("the difference the wrong way round", stepped(error=lambda v, old, beta: beta * (old - v)),
        "The difference is taken the wrong way round. What is missing is v minus what the key reads."),
    Mistake("the sum of both", stepped(error=lambda v, old, beta: beta * (v + old)),
        "The old value is added to v. Subtract it: what is missing is v minus what the key reads."),
    Mistake("β on v only", stepped(error=lambda v, old, beta: beta * v - old),
        "β scales v only. It scales the whole difference: β (v − kᵀS)."),
    Mistake("β on the old value only", stepped(error=lambda v, old, beta: v - beta * old),
        "β scales the old value only. It scales the whole difference: β (v − kᵀS)."),
    Mistake("β left out", stepped(error=lambda v, old, beta: v - old),
        "β is left out. It says how far the state moves towards v."),
    Mistake("β twice", stepped(error=lambda v, old, beta: beta**2 * (v - old)),
        "β counts twice. It scales the difference once."),
    Mistake("the whole state fades", stepped(error=lambda v, old, beta: beta * v, kept=lambda s, beta: (1 - beta) * s),
        "The whole state fades by 1 − β. Only what this key reads is replaced; other keys keep theirs."),
    Mistake("the state thrown away", stepped(kept=lambda state, beta: np.zeros_like(state)),
        "What is returned is the change alone. Add it to the old state."),
    Mistake("read along the columns", stepped(read=lambda state, k: state @ k if len(k) == len(state.T) else k @ state),
        "The key reads along the columns where d = e. Keys belong to rows: k @ state."),
    Mistake("written along the columns",
        stepped(write=lambda k, error: np.outer(error, k) if len(k) == len(error) else np.outer(k, error)),
        "The change is transposed where d = e. Row i changes by k[i]: np.outer(k, …)."),
    Mistake("the key made one long", stepped(key=lambda k: k / np.linalg.norm(k)),
        "The key is divided by its length. Models do that before this step; use k as it is."),
    Mistake("written in place", in_place,
        "It is right but writes into the state that it was given, which the caller still needs. Make a new array."),
)  # fmt: skip


EXERCISES = {
    "delta_step": Exercise(2, {"delta_step": stepped()}, DELTA_MISTAKES),
}
