"""The guesses of day 4's lesson: what each asks, what it is compared with, and why it comes out so."""

from typing import Any

from course_utils.costs.configurations import MODELS
from course_utils.costs.memory import score_bytes
from course_utils.models import induction
from course_utils.views import Guess


def the_head_that_looks_back_by_one(model: Any) -> Guess:
    return Guess.choice(
        4, "the head that looks back by one",
        "One head gives nearly all its weight to the letter just before. "
        "In which layer is it?",
        choices=["layer 0", "layer 1", "one in each"],
        truth=f"layer {induction.previous_token_scores(model, 12).argmax() // 4}",
        why="Its map has one dark line, one place to the left of the diagonal.",
    )  # fmt: skip


def rank_of_the_scores(ranks: Any) -> Guess:
    return Guess.curve(
        4, "rank of the scores",
        "Twelve tokens of 16 numbers: which rank has the 12 × 12 table of "
        "scores of one head?",
        list(ranks), truth=list(ranks.values()), low=0, high=16,
        x_label="number of heads h", y_label="rank", x_scale="log",
        why="Two limits meet here. Which one holds with a single head?",
    )  # fmt: skip


def rows_of_head_0(viewed: Any) -> Guess:
    return Guess.choice(
        4, "rows of head 0",
        "After view alone: of which tokens are the three rows of head 0?",
        choices=["0, 1, 2", "0, 0, 1", "0, 1, 1", "0, 2, 1"],
        truth=", ".join(map(str, (viewed[0, :, 0] // 10).tolist())),
        why="Each row takes the next two numbers in memory.",
    )  # fmt: skip


def heads_as_wide_as_the_model(eighteen: Any) -> Guess:
    return Guess.number(
        4, "heads as wide as the model",
        f"In how many of {len(eighteen)} models is h · d_head equal to d_model?",
        truth=sum(
            each.n_heads * each.d_head == each.d_model for each in eighteen
        ),
        low=0, high=len(eighteen), unit="models",
        why="Three of them are Qwen3, in three sizes, all with d_head = 128.",
    )  # fmt: skip


def the_last_addition(stream: Any, steps: Any) -> Guess:
    return Guess.number(
        4, "the last addition",
        "How long is what the last feed-forward network adds, over the length "
        "of the stream after it?",
        truth=(steps[-1][1][0, -1].norm() / stream[0, -1].norm()).item(),
        low=0, high=1.5,
        why="A touch at the end, or most of the answer?",
    )  # fmt: skip


def the_idle_bias(changes: Any) -> Guess:
    return Guess.choice(
        4, "the idle bias", "Which bias changes nothing in the output?",
        choices=changes, truth=min(changes, key=changes.get),
        why="Within rounding. The hint below leads to the reason.",
    )  # fmt: skip


def share_of_the_core(core_share: Any) -> Guess:
    return Guess.curve(
        4, "share of the core",
        "What share of a layer's FLOPs is the core of attention, "
        "with d_model = 4096?",
        [1024, 4096, 16384, 65536, 131072], truth=core_share, low=0, high=1,
        x_label="tokens T", y_label="share of the FLOPs", x_scale="log",
        why="Counted with the formulas of part 5. Where it passes one half, "
        "the next lines find.",
    )  # fmt: skip


def scores_against_weights() -> Guess:
    return Guess.number(
        4, "scores against weights",
        "Tables of weights of all 32 layers, over the bytes of LLaMA 7B's own "
        "parameters, at T = 8,192: how many times as large?",
        truth=(32 * score_bytes(1, 32, 8192)
               / (2 * MODELS["LLaMA 7B"].parameters())),
        low=0, high=50, unit="times",
        why="One text, 2 bytes a number, one table for each head and layer.",
    )  # fmt: skip


def loss_by_head(rises: Any) -> Guess:
    return Guess.curve(
        4, "loss by head",
        "By how much does the loss of the second copy rise when this head "
        "alone is off?",
        [f"{place // 4}, {place % 4}" for place in range(8)],
        truth=rises.flatten(), low=-0.5, high=5, unit="nats",
        x_label="layer, head", y_label="rise in loss",
        why="Layer 0 has the previous-token head, layer 1 the induction heads.",
    )  # fmt: skip


def four_heads_off(rise: Any, alone: Any) -> Guess:
    return Guess.number(
        4, "four heads off",
        "One by one the four induction heads cost "
        f"{sum(alone.values()):.1f} nats in all. "
        "By how much does the loss rise when all four are off at once?",
        truth=rise(*alone), low=0, high=6, unit="nats",
        why="On the same 64 texts.",
    )  # fmt: skip


def the_head_of_the_story(when_wide: Any, street: Any, animal: Any) -> Guess:
    return Guess.choice(
        4, "the head of the story",
        "With wide for tired: where does the head look that gave most to animal?",
        choices=["more to street", "more to animal"],
        truth="more to street" if when_wide[street] > when_wide[animal]
        else "more to animal",
        why="It was chosen, out of 72, for its large number.",
    )  # fmt: skip
