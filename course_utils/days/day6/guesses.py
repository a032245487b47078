"""The guesses of day 6's lesson: what each asks, what it is compared with, and why it comes out so."""

from typing import Any

import torch

from course_utils.costs import memory
from course_utils.views import Guess


def bytes_of_the_scores() -> Guess:
    return Guess.number(
        6, "bytes of the scores",
        "How many GB do the scores of one layer take, with 8192 tokens, "
        "32 heads and 2 bytes a number?",
        truth=memory.score_bytes(1, 32, 8192) / 1e9,
        low=1e-4, high=1e4, scale="log", unit="GB",
        why="That is h · T² · 2 bytes.",
    )  # fmt: skip


def ridge_point_of_a_card(card: Any) -> Guess:
    return Guess.number(
        6, "ridge point of a card",
        "How many FLOPs must a kernel do for each byte it moves, so that an "
        "H100 is never kept waiting by its memory?",
        truth=card.ridge_point, low=1, high=10_000, scale="log",
        why="989 TFLOP/s in 16 bits, divided by 3.35 TB/s.",
    )  # fmt: skip


def how_often_o_is_rescaled(records_met: Any) -> Guess:
    return Guess.number(
        6, "how often o is rescaled",
        "A row of 4096 random scores: how many of them are larger than all "
        "before, on average?",
        truth=records_met, low=1, high=4096, scale="log",
        why="Counted over a thousand rows, the first score included.",
    )  # fmt: skip


def errors_in_bfloat16(nearer: Any) -> Guess:
    return Guess.choice(
        6, "errors in bfloat16",
        "In bfloat16: which comes nearer to float64?",
        choices=["naive is nearer", "tiled is nearer", "much the same"],
        truth=nearer(torch.bfloat16), why="In float32 it may be another one.",
    )  # fmt: skip


def bytes_against_fast_memory(kib: Any, formula: Any) -> Guess:
    return Guess.curve(
        6, "bytes against fast memory",
        "With 16 KiB of fast memory naive attention moves "
        f"{formula(4096, 16, 2**14)[0] / 1e6:,.0f} MB (T = 4096, d = 16). "
        "How much does the tiled one move?",
        kib, truth=lambda size: formula(4096, 16, 1024 * int(size))[1] / 1e6,
        low=0.1, high=1000, scale="log", unit="MB",
        x_label="fast memory, KiB", y_label="bytes moved", x_scale="log",
        why="By the formula, which the next cell checks against the count.",
    )  # fmt: skip


def a_row_without_a_mask(read_by_row_0: Any) -> Guess:
    return Guess.number(
        6, "a row without a mask",
        "The numbers of row 0 are 0 to 9, those of row 1 are 10 to 19. Without "
        "a mask, and with BLOCK = 4: what is the sum of row 0?",
        truth=read_by_row_0.sum(), low=0, high=200,
        why="Three blocks of 4 are 12 numbers, two of them of row 1.",
    )  # fmt: skip


def a_larger_block(changes: Any) -> Guess:
    return Guess.choice(
        6, "a larger block",
        "The scores 0.5, 2, 1, −1, 3, 2.5, 0, 1.5, −2, 3.5. BLOCK goes from 4 "
        "to 8. What changes?",
        choices=["the weights", "how often m grows", "both", "neither"],
        truth=changes, why="Blocks of 4 have the peaks 2, 3 and 3.5.",
    )  # fmt: skip


def loads_of_a_key(programs: Any) -> Guess:
    return Guess.number(
        6, "loads of a key",
        "64 tokens, blocks of 16 queries and 16 keys: how many times is each "
        "key loaded, by all programs together?",
        truth=programs, low=1, high=64, scale="log",
        why="Each program passes over all keys once.",
    )  # fmt: skip


def programs_with_split_keys(parts_of_cache: Any) -> Guess:
    return Guess.number(
        6, "programs with split keys",
        "One new query, 8 key heads, a cache of 32,768 keys in parts of 1,024: "
        "how many programs can run side by side?",
        truth=8 * parts_of_cache, low=1, high=10_000, scale="log",
        why="One for each key head and part, where there were 8 before.",
    )  # fmt: skip
