"""The guesses of day 7's lesson: what each asks, what is computed, and why it comes out so."""

import numpy as np

from course_utils.attention import arrays
from course_utils.costs.fragmentation import Trace
from course_utils.serving import speculative
from course_utils.serving.costs import A100
from course_utils.serving.eight_prompts import count_steps
from course_utils.serving.latency import gaps, percentile
from course_utils.serving.simulate import Log, simulate
from course_utils.serving.traffic import DOCUMENTS, poisson
from course_utils.views import Guess

_STEP = A100.__call__  # for mypy a named tuple is no function, even if it can be called


def company_in_a_step() -> Guess:
    keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    values = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    alone, _ = arrays.attention(keys[2:], keys, values)
    in_company, _ = arrays.attention(keys[[2, 0, 1]], keys, values)  # three rows in the step, and A's own keys
    same = np.allclose(alone[0], in_company[0])
    return Guess.choice(
        7, "company in a step",
        "Alone, arrived gets the output (0.2483, 0.2483) from day 1. What does it get in this step?",
        choices=["the same", "something between the two texts", "the same, with smaller weights"],
        truth="the same" if same else "something between the two texts",
        why="Only the products with W_Q, W_K and W_V are shared, and those go row by row. Its query meets A's keys.",
    )  # fmt: skip


def slots_refilled(static: Log, refilled: Log) -> Guess:
    return Guess.number(
        7, "slots refilled",
        "For these 200 requests, by what factor does static batching increase the number of steps?",
        truth=len(static.steps) / len(refilled.steps), low=1, high=8, scale="log",
        why="A batch lasts as long as the longest of its 8 answers.",
    )  # fmt: skip


def reserved_and_empty(trace: Trace) -> Guess:
    return Guess.number(
        7, "reserved and empty",
        "Each request reserves room for 2,048 tokens, the longest that is allowed. While other requests "
        "are waiting, what share of the reserved room is empty?",
        truth=100 * (1 - trace.mean_filled / trace.mean_reserved), low=0, high=100, unit=" %",
        why="Room is reserved for the longest text. Most texts end much earlier, and even a long text is "
        "short at first.",
    )  # fmt: skip


def steps_for_eight_prompts() -> Guess:
    return Guess.number(
        7, "steps for eight prompts",
        "Eight prompts want 8, 3, 5, 4, 7, 3, 6 and 4 tokens: 40 steps one after the other. How many steps do they "
        "take in four slots that are refilled?",
        truth=count_steps(), low=8, high=40,
        why="40 tokens in four slots take at least 10 steps, and near the end some slots stay empty.",
    )  # fmt: skip


def ten_at_once() -> Guess:
    return Guess.number(
        7, "ten at once",
        "A request decodes with 500 tokens in its cache. Then ten such requests decode in one step. By what factor "
        "does that make the step longer?",
        truth=A100(10, 5000) / A100(1, 500), low=1, high=10,
        why="The weights are read once for all ten. Ten times as much cache is read, but that is little "
        "beside the weights.",
    )  # fmt: skip


def the_longest_p95_of_the_gap() -> Guess:
    documents = poisson(200, 2.0, seed=0, prompts=DOCUMENTS)
    budgets = {"budget 64": 64, "budget 512": 512, "no budget": None}

    def p95(name: str) -> float:
        served = simulate(documents, _STEP, 16, budgets[name]).served
        return percentile((gap for each in served for gap in gaps(each.times)), 95)

    return Guess.choice(
        7, "the longest p95 of the gap",
        "19 of 20 gaps are no longer than their p95. Two documents come per second. Where is the p95 longest?",
        choices=list(budgets), truth=max(budgets, key=p95),
        why="Count the gaps that one long prompt lengthens: one in each text without a budget, several with 512.",
    )  # fmt: skip


def the_first_word_after_a_rejection() -> Guess:
    # those of the stepper
    p, q = np.array([0.4, 0.3, 0.15, 0.1, 0.05]), np.array([0.15, 0.25, 0.4, 0.1, 0.1])
    shortcut = speculative.resulting_law(p, q, from_p=True)
    return Guess.number(
        7, "the first word after a refusal",
        "With the stepper's p and q, p gives cat a probability of 0.4. How often does the shortcut write cat?",
        truth=float(shortcut[0]), low=0, high=1,
        why="Kept drafts give it 0.15, its share in q. Drawing from p after a rejection adds too little to that.",
    )  # fmt: skip


def gain_against_requests() -> Guess:
    return Guess.curve(
        7, "gain against requests",
        "Four drafts per round that cost nothing to make, each kept with probability 0.6, and empty caches. By what "
        "factor do the drafts speed up the server of part 6, for each number of requests in a step?",
        [1, 4, 16, 64, 256], truth=lambda n: speculative.speed_up(_STEP, 0.6, 4, int(n)),
        low=0.1, high=10, scale="log", unit="×", x_label="requests in a step", y_label="times as fast", x_scale="log",
        why="Once a step waits for arithmetic, rejected drafts cost time.",
    )  # fmt: skip
