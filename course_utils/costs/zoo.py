"""Ten models of 2024 to 2026, and what each keeps of a long text: `ZOO["DeepSeek-V3"].kept_bytes(131072)`.

`configurations` holds models whose layers are alike. Here a model is several kinds of layers: with a window or without,
with keys and values of their own or another layer's, with a latent, with a state in place of a cache, with a part of
the entries chosen for each query. Only attention is counted, and in it what grows with the text or is kept of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_utils.costs.counts import FLOPS_PER_MULTIPLY_ADD
from course_utils.costs.memory import value_bytes
from course_utils.costs.roofline import Task
from course_utils.costs.sizes import whole

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Layers:
    """`count` layers of one kind.

    An entry is what is kept for one token, `numbers` numbers, or for `every` tokens, where so many are compressed into
    one. heads and work: each of so many query heads spends `work` multiply-adds on an entry that it attends to.
    window: only the last so many tokens have an entry. shared: of the layers, how many read another layer's entries and
    keep none. chosen: how many entries a query attends to at most; an index key of index_numbers numbers, kept for each
    entry, lets index_heads heads choose them. state: numbers that a layer without entries keeps, however long the text.
    """

    count: int
    numbers: int = 0
    heads: int = 0
    work: int = 0
    window: int | None = None
    every: int = 1
    shared: int = 0
    chosen: int | None = None
    index_numbers: int = 0
    index_heads: int = 0
    state: int = 0

    def entries(self, T: int) -> int:
        """Return how many entries a layer has after T tokens."""
        return min(T, self.window or T) // self.every if self.numbers else 0

    def numbers_kept(self, T: int) -> int:
        """Return how many numbers all layers keep of T tokens."""
        return (self.count - self.shared) * (self.entries(T) * (self.numbers + self.index_numbers) + self.state)

    def step(self, T: int) -> tuple[int, int]:
        """FLOPs of a decode step at T tokens in all layers, and numbers that it moves.

        A state is read and written. Its update is counted as three passes of multiply-adds over it: what the state
        says of the key, the correction, and the query's answer. Source: Yang et al. 2024 (Gated DeltaNet), section 3.1.
        """
        entries = self.entries(T)
        attended = min(entries, self.chosen or entries)
        work = self.heads * self.work * attended + self.index_heads * self.index_numbers * entries + 3 * self.state
        moved = self.numbers * attended + self.index_numbers * entries + 2 * self.state
        return self.count * FLOPS_PER_MULTIPLY_ADD * work, self.count * moved


@dataclass(frozen=True)
class Model:
    """A model's attention as kinds of layers, with its year, the name of what it does, and the source of the sizes."""

    name: str
    year: int
    kind: str
    layers: tuple[Layers, ...]
    source: str

    def kept_bytes(self, T: int, bytes_per_value: float | str | torch.dtype = 2) -> float:
        """Return the bytes kept of one text of T tokens."""
        (T,) = whole(T=T)
        return sum(layers.numbers_kept(T) for layers in self.layers) * value_bytes(bytes_per_value)

    def step(self, T: int, bytes_per_value: float | str | torch.dtype = 2) -> Task:
        """Return what attention does in one decode step at T tokens: FLOPs, and bytes moved, each layer on its own.

        Projections and other weights are not in it; a batch shares those, and not this.
        """
        (T,) = whole(T=T)
        flops, moved = (sum(parts) for parts in zip(*(layers.step(T) for layers in self.layers), strict=True))
        return Task(flops, moved * value_bytes(bytes_per_value))


def grouped_layers(
    count: int, heads: int, n_kv_heads: int, d_head: int, window: int | None = None, shared: int = 0
) -> Layers:
    """Layers with keys and values of n_kv_heads heads; MHA where that is all heads."""
    return Layers(count, 2 * n_kv_heads * d_head, heads, 2 * d_head, window, shared=shared)


def latent(count: int, heads: int, d_latent: int, d_rope: int, **choice: int) -> Layers:
    """Layers of multi-head latent attention, absorbed: all heads score latent and rotary key, and blend the latent.

    choice: chosen, index_numbers and index_heads, where a query attends to a part. Source: DeepSeek-AI 2024a, 2.1.2.
    """
    return Layers(count, d_latent + d_rope, heads, 2 * d_latent + d_rope, **choice)


def recurrent(count: int, heads: int, d_head: int) -> Layers:
    """Layers of linear attention: each head keeps a d_head × d_head state. Short convolutions are not counted."""
    return Layers(count, state=heads * d_head * d_head)


def compressed_layers(count: int, heads: int, d: int, every: int, **choice: int) -> Layers:
    """Layers that keep one vector of d numbers, key and value at once, for every so many tokens."""
    return Layers(count, d, heads, 2 * d, every=every, **choice)


_ALL = [
    Model(
        "Phi-3 mini 128k", 2024, "MHA", (grouped_layers(32, 32, 32, 96),),
        "config.json of microsoft/Phi-3-mini-128k-instruct",
    ),
    Model(
        "Llama 3.1 8B", 2024, "GQA", (grouped_layers(32, 32, 8, 128),),
        "Grattafiori et al. 2024 (Llama 3), table 3",
    ),
    Model(
        "Gemma 3 27B", 2025, "windows, one layer in 6 full",
        (grouped_layers(10, 32, 16, 128), grouped_layers(52, 32, 16, 128, window=1024)),
        "Gemma team 2025 (Gemma 3), section 2; gemma/config.py of its code",
    ),
    Model(
        "DeepSeek-V3", 2024, "MLA, absorbed", (latent(61, 128, 512, 64),),
        "DeepSeek-AI 2024b (DeepSeek-V3), section 4.2",
    ),
    Model(
        "DeepSeek-V3.2", 2025, "MLA, 2048 chosen",
        (latent(61, 128, 512, 64, chosen=2048, index_numbers=128, index_heads=64),),
        "DeepSeek-AI 2025 (DeepSeek-V3.2), section 2.1; its config.json",
    ),
    Model(
        "gpt-oss-120b", 2025, "windows, one layer in 2 full",
        (grouped_layers(18, 64, 8, 64), grouped_layers(18, 64, 8, 64, window=128)),
        "config.json of openai/gpt-oss-120b",
    ),
    Model(
        "Qwen3-Next 80B", 2025, "linear, one layer in 4 full",
        (grouped_layers(12, 16, 2, 256), recurrent(36, 32, 128)),
        "Qwen3NextConfig in Transformers, whose defaults are this model",
    ),
    Model(
        "Gemma 4 E4B", 2026, "windows, and layers that share",
        (grouped_layers(7, 8, 2, 512, shared=3), grouped_layers(35, 8, 2, 256, window=512, shared=15)),
        "config.json of google/gemma-4-E4B-it: every sixth full, the last 18 share",
    ),
    Model(
        "Kimi Linear 48B", 2025, "linear, one layer in 4 MLA",
        (latent(7, 32, 512, 64), recurrent(20, 32, 128)),
        "config.json of moonshotai/Kimi-Linear-48B-A3B-Instruct; arXiv 2510.26692",
    ),
    Model(
        "DeepSeek-V4 Flash", 2026, "compressed, 4 or 128 to one",
        (  # the window is in all 43 layers
            compressed_layers(43, 64, 512, 1, window=128),
            compressed_layers(21, 64, 512, 4, chosen=512, index_numbers=128, index_heads=64),
            compressed_layers(20, 64, 512, 128),
        ),
        "config.json of deepseek-ai/DeepSeek-V4-Flash, compress_ratios",
    ),
]  # fmt: skip

ZOO = {model.name: model for model in _ALL}
