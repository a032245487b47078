"""The guesses of day 7's lesson: what each asks, what it is compared with, and why it comes out so."""

from typing import Any

from course_utils.serving import speculative
from course_utils.views import Guess


def ten_at_once(gpu: Any) -> Guess:
    return Guess.number(
        7, "ten at once",
        "On this card one request decodes with 500 tokens in its cache. Then "
        "ten such requests decode in one step. How many times as long does "
        "that step take?",
        truth=gpu(10, 5000) / gpu(1, 500), low=1, high=10,
        why="The base is paid once. Only the small parts come ten times.",
    )  # fmt: skip


def slots_refilled(static_log: Any, refilled_log: Any) -> Guess:
    return Guess.number(
        7, "slots refilled",
        "How many times as many steps does static batching take for these "
        "1,000 requests?",
        truth=len(static_log.steps) / len(refilled_log.steps), low=1, high=8,
        scale="log",
        why="A batch lasts as long as the longest of its 8 answers.",
    )  # fmt: skip


def the_knee(arrival_rates: Any, by_rate: Any) -> Guess:
    return Guess.curve(
        7, "the knee",
        "Continuous batching, 16 slots. Within how many seconds do 19 of 20 "
        "requests get their first token (the p95 of TTFT), as more come each "
        "second?",
        arrival_rates, truth=[row["ttft_p95"].mean for row in by_rate],
        low=0.01, high=10, scale="log", unit=" s",
        x_label="requests a second", y_label="p95 of TTFT",
        why="Far below what the server bears a request hardly waits. Near it "
        "a queue builds up, and does not go away.",
    )  # fmt: skip


def reserved_and_empty(reserved: Any) -> Guess:
    return Guess.number(
        7, "reserved and empty",
        "Each request reserves room for 3,072 tokens. Which share of all that "
        "room is empty when the texts are done?",
        truth=100 * reserved.share, low=0, high=100, unit=" %",
        why="The room is for the longest text, and most are short.",
    )  # fmt: skip


def all_of_it_cached(found_by_each: Any) -> Guess:
    return Guess.choice(
        7, "all of it cached",
        "A prompt of 8 tokens, blocks of 4, and both blocks are known. How "
        "many of its tokens may come from the cache?",
        choices=["8", "7", "4"], truth=str(found_by_each[1]),
        why="One query has to run, for the logits. Blocks are shared whole.",
    )  # fmt: skip


def one_system_prompt(hit_rates: Any) -> Guess:
    return Guess.number(
        7, "one system prompt",
        "48 prompts have the same 200 tokens in front, and 40 of their own. "
        "Which share of all their tokens does a radix tree find?",
        truth=100 * hit_rates["one system prompt"][1], low=0, high=100,
        unit=" %",
        why="The first prompt computes the 200 tokens, the other 47 find them.",
    )  # fmt: skip


def the_time_of_day_in_front(late: Any) -> Guess:
    return Guess.number(
        7, "the time of day in front",
        "Chats had a hit rate above two thirds in blocks. What is it when each "
        "prompt begins with another token?",
        truth=100 * late["chat turns"][0], low=0, high=100, unit=" %",
        why="Every name in a chain holds the names before it.",
    )  # fmt: skip


def largest_gap_without_a_budget(served: Any) -> Guess:
    return Guess.number(
        7, "largest gap without a budget",
        "How many times as long as with a budget of 512 tokens is the largest "
        "gap without a budget?",
        truth=served(None).largest_gap / served(512).largest_gap,
        low=1, high=100, scale="log", unit="×",
        why="Several documents may be computed in one step: the next table.",
    )  # fmt: skip


def the_shortest_p95_of_the_gap(by_budget: Any) -> Guess:
    return Guess.choice(
        7, "the shortest p95 of the gap",
        "With which of these is the p95 of the gap the shortest?",
        choices=list(by_budget), truth=min(by_budget, key=by_budget.get),
        why="Count the gaps that a long step makes. The text below says how.",
    )  # fmt: skip


def drawing_from_p_after_a_refusal(popular: Any, spec_p: Any) -> Guess:
    return Guess.number(
        7, "drawing from p after a refusal",
        "How far is what the popular version writes from p, in total variation? "
        "p and q are those of the stepper.",
        truth=speculative.total_variation(popular, spec_p), low=0, high=1,
        why="Kept drafts have given each token min(p, q) already, and p is added "
        "to tokens that lack nothing.",
    )  # fmt: skip


def tokens_of_a_round() -> Guess:
    return Guess.number(
        7, "tokens of a round",
        "Four drafts a round, each kept with chance 0.8. How many tokens does a "
        "round write on average?",
        truth=speculative.expected_tokens(0.8, 4), low=1, high=5,
        why="The fourth draft counts in 41 of 100 rounds: four must be kept.",
    )  # fmt: skip


def acceptance_of_bigrams(found_with: Any) -> Guess:
    return Guess.number(
        7, "acceptance of bigrams",
        "How often is a draft of the counting drafter kept?",
        truth=found_with[2]["alpha"], low=0, high=1,
        why="One character of context tells little of what the target wants.",
    )  # fmt: skip


def gain_against_requests(batches: Any, gpu: Any) -> Guess:
    return Guess.curve(
        7, "gain against requests",
        "Four drafts a round, each kept with chance 0.6, and empty caches. "
        "How many times as fast is a server with so many requests in a step?",
        batches,
        truth=lambda n: speculative.speed_up(gpu, 0.6, 4, int(n)),
        low=0.1, high=10, scale="log", unit="×",
        x_label="requests in a step", y_label="times as fast", x_scale="log",
        why="Once a step no longer waits for weights, refused drafts cost time.",
    )  # fmt: skip


def bytes_between_machines(moved: Any) -> Guess:
    return Guess.choice(
        7, "bytes between machines", "Which moves the most?",
        choices=list(moved), truth=max(moved, key=moved.get),
        why="A cache is sent once for each prompt, the others at every step.",
    )  # fmt: skip
