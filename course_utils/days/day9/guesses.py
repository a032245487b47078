"""The guesses of day 9's lesson: what each asks, what is computed, and why it comes out so."""

from collections.abc import Sequence

from course_utils.models import dissection, small_gpt_record
from course_utils.models.checkup import Report
from course_utils.views import Guess

# First sitting: can a real model speak through your own code? -------------------------------------------------------


def largest_difference(together: float) -> Guess:
    return Guess.number(
        9, "largest difference",
        "SmolLM2 runs on answers to exercises in place of its own functions. By how much does the logit that moves "
        "most differ?",
        truth=together, low=1e-8, high=10, scale="log",
        why="The functions compute the same numbers in another order, and float32 keeps about seven digits.",
    )  # fmt: skip


def faulty_part(part: str) -> Guess:
    return Guess.choice(
        9, "faulty part",
        "Which of these parts can be wrong for the first of five tokens, and right for a text of this token alone?",
        choices=["rotate", "merge_heads", "the softmax over the vocabulary"], truth=part,
        why="The first token sees only itself, with a weight of 1 however queries and keys are rotated, and the "
        "softmax over the vocabulary sees one token at a time. With one token, heads that are merged without moving "
        "their axis happen to come out in order.",
    )  # fmt: skip


def looking_without_one_head() -> Guess:
    found = dissection.dissect("previous token", 1)
    ((layer, head),) = found.heads
    return Guess.number(
        9, "looking without one head",
        f"With all heads on, the eight best induction heads have a mean score of {found.whole.looking:.2f}. What is it "
        f"with one head off, head {head} of layer {layer}?",
        truth=found.without.looking, low=0, high=1,
        why="An induction head looks for a token that has the name of its predecessor written in it. This head writes "
        "it there.",
    )  # fmt: skip


def bytes_per_token(sizes: Sequence[int], lengths: Sequence[float]) -> Guess:
    return Guess.curve(
        9, "bytes per token",
        "How many bytes of Shakespeare does a token hold on average, at each size of the vocabulary?",
        [f"{size:,}" for size in sizes], truth=[*lengths], low=0, high=6, x_label="vocabulary",
        y_label="bytes per token", why="The first merges are the most frequent pairs; each later one shortens less.",
    )  # fmt: skip


# Second sitting: how do you know that a model learns? ---------------------------------------------------------------


def least_to_lose() -> Guess:
    ways = ["without residual", "without norm", "without gate", "with PyTorch's initialisation"]
    bits = {row["way"]: row["mean"] for row in small_gpt_record.ablations()}
    return Guess.choice(
        9, "least to lose",
        "Which of these costs least, after 200 steps?",
        choices=ways, truth=min(ways, key=bits.__getitem__),
        why="The gate is a refinement. In 200 steps, without any of the other three, the model hardly gets past "
        "counting single tokens.",
    )  # fmt: skip


def training_curve() -> Guess:
    shipped = small_gpt_record.shipped()
    return Guess.curve(
        9, "training curve",
        "The small model has a vocabulary of 1,024 tokens and trains for 1,600 steps. What is its loss at these steps?",
        [10, 50, 200, 800, 1590],
        truth=lambda step: shipped["losses"][min(int(step) // small_gpt_record.AVERAGED, len(shipped["losses"]) - 1)],
        low=2, high=8, unit="nats per token", x_label="step", y_label="loss", x_scale="log",
        why="It begins at ln 1,024 = 6.93. How frequent tokens are is learned in a few dozen steps, the rest slowly.",
    )  # fmt: skip


def first_loss(vocabulary: int, found: float) -> Guess:
    return Guess.number(
        9, "first loss",
        f"A model with a vocabulary of {vocabulary:,} has not been trained. What is its loss?",
        truth=found, low=0, high=14, unit="nats",
        why="It gives all tokens nearly the same probability, so the loss is close to the logarithm of their number.",
    )  # fmt: skip


def which_illness(report: Report) -> Guess:
    return Guess.choice(
        9, "which illness",
        "Which illness does this model have?",
        choices=["no mask", "no scale", "untied positions", "softmax over the wrong axis"], truth=report.illnesses[0],
        why="The checkup reads the factor of the scores off the weights, so it needs neither the code nor its author.",
    )  # fmt: skip
