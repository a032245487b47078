"""The guesses of day 6's lesson: what each asks, what is computed, and why it comes out so."""

import math

import numpy as np
import torch

from course_utils.attention import traffic
from course_utils.costs import memory
from course_utils.models import long_text
from course_utils.views import Guess


def bytes_of_the_scores() -> Guess:
    return Guess.number(
        6, "bytes of the scores",
        "How many GB do the scores of one layer take, with 16,384 tokens, 32 heads and 2 bytes per number?",
        truth=memory.score_bytes(1, 32, 16_384) / 1e9, low=1e-4, high=1e4, scale="log", unit="GB",
        why="That is h · T² · 2 bytes.",
    )  # fmt: skip


def how_often_o_is_rescaled() -> Guess:
    scores = torch.randn(1000, 4096, generator=torch.Generator().manual_seed(0))
    larger = scores.cummax(dim=-1).values.diff() > 0
    return Guess.number(
        6, "how often o is rescaled",
        "A row of 4,096 random scores: how many of them are larger than all scores before them, on average?",
        truth=1 + larger.sum(dim=-1).double().mean(), low=1, high=4096, scale="log",
        why="Counted over a thousand rows, the first score included.",
    )  # fmt: skip


def errors_in_bfloat16(errors: list[float]) -> Guess:
    of_naive, of_tiled = errors
    nearer = "tiled is nearer" if of_tiled < of_naive else "naive is nearer"
    return Guess.choice(
        6, "errors in bfloat16",
        "With bfloat16 inputs: which comes closer to float64?",
        choices=["naive is nearer", "tiled is nearer", "much the same"],
        truth="much the same" if 0.7 < of_tiled / of_naive < 1.4 else nearer,
        why="Naive attention stores the scores and the weights in 16 bits.",
    )  # fmt: skip


def bytes_against_fast_memory() -> Guess:
    T, d = 4096, 16

    def by_tiles(kib: float) -> float:
        blocks = traffic.blocks_that_fit(1024 * int(kib), d, d, 4)
        return sum(traffic.tiled_traffic(T, T, d, d, *blocks, 4).values()) / 1e6

    block_q, _ = traffic.blocks_that_fit(2**14, d, d, 4)
    by_naive = sum(traffic.naive_traffic(T, T, d, d, 4, block_q).values()) / 1e6
    return Guess.curve(
        6, "bytes against fast memory",
        f"With 16 KiB of fast memory naive attention moves {by_naive:,.0f} MB (T = 4096, d = 16). "
        "How much do tiles move, with this much and with more?",
        [16, 32, 64, 128, 256], truth=by_tiles, low=0.1, high=1000, scale="log", unit="MB",
        x_label="fast memory, KiB", y_label="bytes moved", x_scale="log",
        why="From the formula. Blocks of queries grow with the fast memory, so K and V cross less often.",
    )  # fmt: skip


def a_row_without_a_mask() -> Guess:
    behind_each_other = np.arange(40)  # rows of 10
    loaded = math.ceil(10 / 4) * 4  # whole blocks
    return Guess.number(
        6, "a row without a mask",
        "The numbers of row 0 are 0 to 9, those of row 1 are 10 to 19. Without a mask, and with BLOCK = 4: what is the "
        "sum of row 0?",
        truth=behind_each_other[:loaded].sum(), low=0, high=200,
        why="Three blocks of 4 are 12 numbers, and two of these belong to row 1.",
    )  # fmt: skip


def programs_with_split_keys() -> Guess:
    key_heads = 8
    parts = 32_768 // 1024
    return Guess.number(
        6, "programs with split keys",
        "One new query in each of 32 heads, 8 key heads, a cache of 32,768 keys in parts of 1,024: how many programs "
        "does one launch start?",
        truth=key_heads * parts, low=1, high=10_000, scale="log",
        why="One for each key head and part: enough for 132 processors. Without a split, 32 query heads make 32.",
    )  # fmt: skip


def time_without_skipping(times: float) -> Guess:
    return Guess.number(
        6, "time without skipping",
        "An H100, a causal kernel, d_head 128, 8,192 tokens. Now it computes and masks every tile, and skips none: "
        "how many times as long does it take?",
        truth=times, low=0.5, high=8, scale="log", unit="times",
        why="This is what was measured. At this width, twice as many tiles do not take quite twice the time.",
    )  # fmt: skip


def memory_of_a_layer_in_tiles() -> Guess:
    *_, bytes_in_tiles = long_text.lines()["tiled"][1]
    return Guess.number(
        6, "memory of a layer in tiles",
        "What is the most memory, in MB, that the tensors of this layer take up at one time when its attention runs in "
        "tiles?",
        truth=bytes_in_tiles / 1e6, low=1, high=1000, scale="log", unit="MB",
        why="Only rows of queries, keys, values and outputs are left. A tile itself takes a few kB.",
    )  # fmt: skip
