"""Heads of models of 2026 that mix kinds of layers, so that no `Configuration` says their cache.

Each has layers of attention with heads as in this table, and other layers or a selection of keys beside them. `LATER`
lists them, with where each number was read.
"""

from typing import NamedTuple


class Heads(NamedTuple):
    """An attention layer of a model: numbers a token, heads of queries, of keys and values, numbers a head."""

    name: str
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    beside: str
    source: str


LATER = (
    Heads(
        "Qwen3.5 27B", 5120, 24, 4, 256, "16 of 64 layers; the others are linear",
        "config.json of Qwen3.5-27B, 2026, as public code quotes it; Modular's Qwen3_5Config",
    ),
    Heads(
        "MiniMax M3", 6144, 64, 4, 128, "60 layers; from the fourth on each query chooses blocks of keys",
        "config.json of MiniMax-M3, 2026, as Tenstorrent's MiniMaxM3Config quotes it; TensorRT-LLM's documentation",
    ),
    Heads(
        "DeepSeek-V4 Flash", 4096, 64, 1, 512, "43 layers; keys are values too, and are compressed",
        "config.json of DeepSeek-V4-Flash, 2026; NeMo AutoModel's DeepseekV4Config",
    ),
    Heads(
        "Kimi K3", 7168, 96, 96, 128, "24 of 93 layers, latent (day 5); the others are linear",
        "config.json of Kimi-K3, 2026; NeMo Megatron Bridge's kimi_k3_provider",
    ),
)  # fmt: skip
