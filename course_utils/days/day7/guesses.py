"""The guesses of day 7's lesson: what each asks, what is computed, and why it comes out so."""

import math
from typing import Any

import numpy as np

from course_utils.costs.configurations import MODELS
from course_utils.serving import machines, paged, prefix_traffic, prefixes, speculative
from course_utils.serving.costs import RECORDED
from course_utils.serving.latency import gaps, percentile
from course_utils.serving.simulate import Log, simulate
from course_utils.serving.traffic import DOCUMENTS, poisson
from course_utils.views import Guess

_GPU = RECORDED.cost.__call__  # for mypy a named tuple is no function, even if it can be called


def ten_at_once() -> Guess:
    return Guess.number(
        7, "ten at once",
        "On this card one request decodes with 500 tokens in its cache. Then ten such requests decode in one step. How "
        "many times as long does that step take?",
        truth=_GPU(10, 5000) / _GPU(1, 500), low=1, high=10,
        why="The base is paid once. Only the small parts come ten times.",
    )  # fmt: skip


def slots_refilled(static: Log, refilled: Log) -> Guess:
    return Guess.number(
        7, "slots refilled",
        "How many times as many steps does static batching take for these 1,000 requests?",
        truth=len(static.steps) / len(refilled.steps), low=1, high=8, scale="log",
        why="A batch lasts as long as the longest of its 8 answers.",
    )  # fmt: skip


def the_knee(by_rate: list[dict[str, Any]]) -> Guess:
    return Guess.curve(
        7, "the knee",
        "Continuous batching, 16 slots. Within how many seconds do 19 of 20 requests get their first token (the p95 of "
        "TTFT), as more come each second?",
        [row["rate"] for row in by_rate], truth=[row["ttft_p95"].mean for row in by_rate],
        low=0.01, high=10, scale="log", unit=" s", x_label="requests a second", y_label="p95 of TTFT",
        why="Far below what the server bears a request hardly waits. Near it a queue builds up, and does not go away.",
    )  # fmt: skip


def reserved_and_empty() -> Guess:
    lengths = [each.prompt + each.new for each in poisson(1000, math.inf, seed=0)]
    return Guess.number(
        7, "reserved and empty",
        "Each request reserves room for 3,072 tokens. Which share of all that room is empty when the texts are done?",
        truth=100 * paged.reserved_waste(lengths, 3072).share, low=0, high=100, unit=" %",
        why="The room is for the longest text, and most are short.",
    )  # fmt: skip


def all_of_it_cached() -> Guess:
    cache = prefixes.PrefixCache(n_blocks=8, block_size=4)
    _, second = [cache.serve(list(range(8))) for _ in range(2)]
    return Guess.choice(
        7, "all of it cached",
        "A prompt of 8 tokens, blocks of 4, and both blocks are known. How many of its tokens may come from the cache?",
        choices=["8", "7", "4"], truth=str(second),
        why="One query has to run, for the logits. Blocks are shared whole.",
    )  # fmt: skip


def one_system_prompt() -> Guess:
    prompts = prefix_traffic.KINDS["one system prompt"]()
    return Guess.number(
        7, "one system prompt",
        "48 prompts have the same 200 tokens in front, and 40 of their own. Which share of all their tokens does a "
        "radix tree find?",
        truth=100 * prefix_traffic.hit_rate(prefixes.RadixTree(6400), prompts), low=0, high=100, unit=" %",
        why="The first prompt computes the 200 tokens, the other 47 find them.",
    )  # fmt: skip


def the_time_of_day_in_front() -> Guess:
    prompts = prefix_traffic.changed_at_the_beginning(prefix_traffic.KINDS["chat turns"]())
    return Guess.number(
        7, "the time of day in front",
        "Chats had a hit rate above two thirds in blocks. What is it when each prompt begins with another token?",
        truth=100 * prefix_traffic.hit_rate(prefixes.PrefixCache(400, 16), prompts), low=0, high=100, unit=" %",
        why="Every name in a chain holds the names before it.",
    )  # fmt: skip


def largest_gap_without_a_budget() -> Guess:
    documents = poisson(200, 2.0, seed=0, prompts=DOCUMENTS)

    def largest_gap(budget: int | None) -> float:
        return max(gap for each in simulate(documents, _GPU, 16, budget).served for gap in gaps(each.times))

    return Guess.number(
        7, "largest gap without a budget",
        "How many times as long as with a budget of 512 tokens is the largest gap without a budget?",
        truth=largest_gap(None) / largest_gap(512), low=1, high=100, scale="log", unit="×",
        why="Several documents may be computed in one step: the next table.",
    )  # fmt: skip


def the_shortest_p95_of_the_gap() -> Guess:
    documents = poisson(200, 2.0, seed=0, prompts=DOCUMENTS)
    budgets = {"budget 128": 128, "budget 512": 512, "no budget": None}

    def p95(name: str) -> float:
        served = simulate(documents, _GPU, 16, budgets[name]).served
        return percentile((gap for each in served for gap in gaps(each.times)), 95)

    return Guess.choice(
        7, "the shortest p95 of the gap",
        "With which of these is the p95 of the gap the shortest?",
        choices=list(budgets), truth=min(budgets, key=p95),
        why="Count the gaps that a long step makes. The text below says how.",
    )  # fmt: skip


def drawing_from_p_after_a_refusal() -> Guess:
    # those of the stepper
    p, q = np.array([0.4, 0.3, 0.15, 0.1, 0.05]), np.array([0.15, 0.25, 0.4, 0.1, 0.1])
    popular = speculative.resulting_law(p, q, from_p=True)
    return Guess.number(
        7, "drawing from p after a refusal",
        "How far is what the popular version writes from p, in total variation? p and q are those of the stepper.",
        truth=speculative.total_variation(popular, p), low=0, high=1,
        why="Kept drafts have given each token min(p, q) already, and p is added to tokens that lack nothing.",
    )  # fmt: skip


def tokens_of_a_round() -> Guess:
    return Guess.number(
        7, "tokens of a round",
        "Four drafts a round, each kept with chance 0.8. How many tokens does a round write on average?",
        truth=speculative.expected_tokens(0.8, 4), low=1, high=5,
        why="The fourth draft counts in 41 of 100 rounds: four must be kept.",
    )  # fmt: skip


def acceptance_of_bigrams(alpha: float) -> Guess:
    return Guess.number(
        7, "acceptance of bigrams",
        "How often is a draft of the counting drafter kept?",
        truth=alpha, low=0, high=1,
        why="One character of context tells little of what the target wants.",
    )  # fmt: skip


def gain_against_requests() -> Guess:
    return Guess.curve(
        7, "gain against requests",
        "Four drafts a round, each kept with chance 0.6, and empty caches. How many times as fast is a server with so "
        "many requests in a step?",
        [1, 4, 16, 64, 256], truth=lambda n: speculative.speed_up(_GPU, 0.6, 4, int(n)),
        low=0.1, high=10, scale="log", unit="×", x_label="requests in a step", y_label="times as fast", x_scale="log",
        why="Once a step no longer waits for weights, refused drafts cost time.",
    )  # fmt: skip


def bytes_between_machines() -> Guess:
    llama = MODELS["LLaMA 7B"]
    moved = {
        "heads split, a step of 16 tokens": machines.heads_split_bytes(llama, 16, 2),
        "keys split, a step of 16 tokens": machines.keys_split_bytes(llama, 16, 2),
        "apart, a prompt of 2048 tokens": machines.handed_over_bytes(llama, 2048),
    }
    return Guess.choice(
        7, "bytes between machines",
        "Which moves the most?",
        choices=list(moved), truth=max(moved, key=moved.__getitem__),
        why="A cache is sent once for each prompt, the others at every step.",
    )  # fmt: skip
