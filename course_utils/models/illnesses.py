"""Eight faults that people make when they train a model, each planted into a healthy one for `checkup` to name.

    sick = plant("no mask", Patient(model, data), layer=1)
    sick.checkup()

No fault raises an error, and each model trains: that is what makes them faults to look for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor

from course_utils.attention.multihead import MultiHeadAttention
from course_utils.attention.tensors import softmax
from course_utils.models import checkup, small_gpt, training
from course_utils.models.decoder import Decoder


@dataclass(frozen=True)
class Patient:
    """All that `checkup` examines: a model, its data, the function that draws its batches, and its rate."""

    model: Decoder
    data: small_gpt.Data
    draw: training.Draw = small_gpt.batches
    rate: float = training.Recipe.rate
    context: int = small_gpt.CONTEXT

    def checkup(self) -> checkup.Report:
        return checkup.checkup(self.model, self.data, draw=self.draw, rate=self.rate, context=self.context)


def plant(illness: str, patient: Patient, layer: int = 0) -> Patient:
    """Return a copy of a patient that has this illness, in that layer if it is one of a layer; see ILLNESSES.

    The patient given stays as it is. Raises KeyError for another illness.
    """
    sick = replace(patient, model=copy.deepcopy(patient.model))
    return ILLNESSES[illness](sick, layer)


def _attention(patient: Patient, layer: int) -> MultiHeadAttention:
    return cast(MultiHeadAttention, patient.model.blocks[layer].attention)


def _no_mask(patient: Patient, layer: int) -> Patient:
    """Each token sees all others."""
    _attention(patient, layer).own["mask"] = lambda n, m: torch.ones(n, m, dtype=torch.bool)
    return patient


def _shifted_targets(patient: Patient, layer: int) -> Patient:
    """The target of a token is the one after the next."""

    def draw(tokens: Tensor, context: int, batch: int, seed: int, step: int) -> tuple[Tensor, Tensor]:
        inputs, targets = patient.draw(tokens, context + 1, batch, seed, step)
        return inputs[:, :-1], targets[:, 1:]

    return replace(patient, draw=draw)


def _no_scale(patient: Patient, layer: int) -> Patient:
    """Scores are not divided by the root of the width of a head."""
    _attention(patient, layer).scale = 1.0
    return patient


def _high_rate(patient: Patient, layer: int) -> Patient:
    """The rate is a hundred times what it should be."""
    return replace(patient, rate=100 * patient.rate)


def _untied_positions(patient: Patient, layer: int) -> Patient:
    """Queries count from 1 and keys from 0, so that a token as a query is one place ahead of itself as a key."""
    attention = _attention(patient, layer)
    heads, rope = attention.n_heads, attention.rope

    def rotate(x: Tensor, positions: Tensor, base: float) -> Tensor:
        assert rope is not None
        q, k = x[:, :heads], x[:, heads:]  # (B, h, T, d_head), (B, h_kv, T, d_head)
        return torch.cat([rope(q, positions + 1), rope(k, positions)], dim=1)

    attention.own["rotate"] = rotate
    return patient


def _wrong_axis(patient: Patient, layer: int) -> Patient:
    """Each key shares out its weight among the queries."""

    def attend(
        q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, scale: float
    ) -> tuple[Tensor, Tensor]:
        sharing = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(sharing, dim=1) for x in (k, v))  # (B, h, T, d_head)
        scores = q @ k.mT * scale
        scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
        weights = softmax(scores, dim=-2)
        output = weights @ v
        return output, weights

    _attention(patient, layer).own["grouped_attention"] = attend
    return patient


def _data_leak(patient: Patient, layer: int) -> Patient:
    """The held-out text is in the training text, too."""
    data = patient.data
    return replace(patient, data=replace(data, train=torch.cat([data.train, data.held_out])))


def _frozen_layer(patient: Patient, layer: int) -> Patient:
    """The weights of a layer take no gradient."""
    patient.model.blocks[layer].requires_grad_(False)
    return patient


ILLNESSES: dict[str, Callable[[Patient, int], Patient]] = {
    "no mask": _no_mask,
    "shifted targets": _shifted_targets,
    "no scale": _no_scale,
    "learning rate × 100": _high_rate,
    "untied positions": _untied_positions,
    "softmax over the wrong axis": _wrong_axis,
    "data leak": _data_leak,
    "frozen layer": _frozen_layer,
}
IN_A_LAYER = ("no mask", "no scale", "untied positions", "softmax over the wrong axis", "frozen layer")
