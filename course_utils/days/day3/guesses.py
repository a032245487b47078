"""The guesses of day 3's lesson: what each asks, what is computed, and why it comes out so."""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from course_utils.models import facts_record
from course_utils.models.leak_experiment import FLOOR, Run
from course_utils.views import Guess


def which_layers_leak(runs: Mapping[str, Sequence[Run]]) -> Guess:
    below = [name for name, three in runs.items() if max(run.loss for run in three) < FLOOR - 1]
    return Guess.choice(
        3, "which layers leak",
        f"Whose loss goes far below the floor of {FLOOR:.2f}?",
        choices=[
            "no_mask", "no_mask and mask_after", "no_mask and mask_after_renormalised",
            "no_mask, mask_after and mask_after_renormalised",
        ],
        truth=" and ".join(below),
        why="These are the losses on new texts, and the three runs of each layer agree.",
    )  # fmt: skip


def what_parcel_keeps_for_itself(weights: Tensor) -> Guess:
    return Guess.number(
        3, "what parcel keeps for itself",
        "What weight does parcel give to itself under the causal mask?",
        truth=weights[1, 1].item(), low=0, high=1,
        why="Two exponentials are left in its row: 1 for the, and 2.028 for parcel itself.",
    )  # fmt: skip


def what_remains_for_the_others(scaled_scores: Tensor) -> Guess:
    open_keys = scaled_scores[:2].exp().sum().item()
    return Guess.curve(
        3, "what remains for the others",
        "The row of parcel is masked after the softmax. How much of the row remains, for each scaled score of arrived?",
        [-4, -2, -1, 0, 1, 2, 4, 6], truth=lambda score: open_keys / (open_keys + math.exp(score)),
        low=0, high=1, x_label="scaled score of arrived", y_label="what remains of the row",
        why="The more the softmax gives to the blocked key, the less is left for the two open ones.",
    )  # fmt: skip


def loss_of_a_model_that_cheats(at_once: float, past_only: float) -> Guess:
    return Guess.number(
        3, "loss of a model that cheats",
        f"Model B has a loss of {at_once:.1f} when it sees the whole text at once. "
        "What is its loss when it may read only the past?",
        truth=past_only, low=0, high=20, unit="nats",
        why="It learned to copy, and the past holds nothing to copy.",
    )  # fmt: skip


def a_low_number_in_place_of_minus_infinity() -> Guess:
    scores = torch.tensor([1.0, 3.0])
    outcomes = {
        "NaN for both": torch.tensor([math.nan, math.nan]),
        "0 for both": torch.zeros(2),
        "one half for each": torch.full((2,), 0.5),
        "what they are without a mask": torch.softmax(scores, dim=-1),
    }
    actual = torch.softmax(scores - 1e4, dim=-1)
    return Guess.choice(
        3, "a low number in place of −∞",
        "The scores are 1 and 3, and −1e4 is added to both. What weights does a softmax in float32 give?",
        choices=outcomes,
        truth=next(name for name, weights in outcomes.items() if torch.allclose(actual, weights, equal_nan=True)),
        why="The same number was added to both scores, which does not change a softmax.",
    )  # fmt: skip


def loss_of_a_real_model_that_looks_ahead() -> Guess:
    causal, whole = facts_record.fact("looking ahead")["models"]
    return Guess.number(
        3, "loss of a real model that looks ahead",
        f"With its own masks the loss is {causal['loss']:.2f} nats per token. "
        "What is it when all 30 layers see the whole text?",
        truth=whole["loss"], low=0, high=12, unit="nats",
        why="It was never trained to look ahead, but its layers still use what they see.",
    )  # fmt: skip
