"""Real models by name, with the source of each number: `MODELS["Llama 3 8B"].cache_bytes(8192)`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from course_utils.costs import counts
from course_utils.costs.memory import kv_cache_bytes, latent_cache_bytes
from course_utils.costs.sizes import whole

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Configuration:
    """The sizes of a decoder-only transformer that decide what its attention costs.

    d_head need not be d_model / n_heads. d_ff is the width of the feed-forward layer, gated says that it has three
    matrices instead of two, and both are None for a mixture of experts. window is the span of sliding-window attention;
    all layers have it, or, with full_every, all but the last of every so many, which sees everything. tied says that
    input and output embeddings are one matrix. d_latent and d_rope are set for multi-head latent attention, which
    caches d_latent + d_rope numbers for each token and layer; n_kv_heads is then the number of heads read out of the
    latent.
    """

    name: str
    layers: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    d_ff: int | None
    gated: bool | None
    vocabulary: int
    context: int
    source: str
    window: int | None = None
    full_every: int | None = None
    tied: bool = False
    d_latent: int | None = None
    d_rope: int | None = None

    @property
    def kind(self) -> str:
        """How heads share keys and values: "MHA", "GQA", "MQA" or "MLA"."""
        if self.d_latent:
            return "MLA"
        return {self.n_heads: "MHA", 1: "MQA"}.get(self.n_kv_heads, "GQA")

    @property
    def group(self) -> int:
        """How many query heads read the same keys and values."""
        return self.n_heads // self.n_kv_heads

    @property
    def spans(self) -> list[tuple[int, int | None]]:
        """How many layers see how many tokens back, None for all: [(4, None), (22, 512)] for Gemma 3 1B."""
        if self.window is None:
            return [(self.layers, None)]
        full = self.layers // self.full_every if self.full_every else 0
        return [(layers, window) for layers, window in ((full, None), (self.layers - full, self.window)) if layers]

    def cache_bytes(self, T: int, B: int = 1, bytes_per_value: float | str | torch.dtype = 2) -> float:
        """Bytes of the cache for B sequences of T tokens; a layer with a window keeps at most its last `window`."""
        (T,) = whole(T=T)
        tokens_kept = sum(layers * min(T, window or T) for layers, window in self.spans)  # of all layers together
        if self.d_latent and self.d_rope is not None:
            return latent_cache_bytes(1, self.d_latent, self.d_rope, tokens_kept, B, bytes_per_value)
        return kv_cache_bytes(1, self.n_kv_heads, self.d_head, tokens_kept, B, bytes_per_value)

    def layer_flops(self, T: int, causal: bool = False) -> counts.LayerFlops:
        """FLOPs of one layer over T tokens, every token seeing all before it, as if there were no window.

        See counts.layer_flops; roofline.prefill minds the window.
        """
        return counts.layer_flops(T, causal=causal, **self._layer())

    def decode_flops(self, T: int) -> counts.LayerFlops:
        """FLOPs of one layer for one new token that attends to T tokens; see counts.decode_flops."""
        return counts.decode_flops(T, **self._layer())

    def crossover_length(self, against: str = "feed_forward", causal: bool = False) -> float:
        """Return the T at which the core's FLOPs equal those of another part; see counts.crossover_length."""
        return counts.crossover_length(against=against, causal=causal, **self._layer())

    def layer_parameters(self) -> int:
        """Weights of one layer: attention and feed-forward, without biases and norms."""
        layer = self._layer()
        feed_forward = counts.feed_forward_parameters(self.d_model, layer.pop("d_ff"), layer.pop("gated"))
        return counts.attention_parameters(**layer) + feed_forward

    def parameters(self) -> int:
        """Weights of the whole model, with its embeddings, without biases, norms and learned positions (under 1%)."""
        embeddings = self.vocabulary * self.d_model * (1 if self.tied else 2)
        return self.layers * self.layer_parameters() + embeddings

    def _layer(self) -> dict[str, Any]:
        if self.d_ff is None:
            raise ValueError(f"{self.name} has experts, which these counts do not cover: its cache alone")
        names = ("d_model", "n_heads", "n_kv_heads", "d_head", "d_ff", "gated")
        return {name: getattr(self, name) for name in names}


_ALL = [
    Configuration(
        "GPT-2 small", layers=12, d_model=768, n_heads=12, n_kv_heads=12, d_head=64, d_ff=3072, gated=False,
        vocabulary=50257, context=1024, tied=True,
        source="Radford et al. 2019, table 2 and section 2.3; heads: the released code",
    ),
    Configuration(
        "GPT-2 XL", layers=48, d_model=1600, n_heads=25, n_kv_heads=25, d_head=64, d_ff=6400, gated=False,
        vocabulary=50257, context=1024, tied=True,
        source="Radford et al. 2019, table 2 and section 2.3; heads: the released code",
    ),
    Configuration(
        "GPT-3 175B", layers=96, d_model=12288, n_heads=96, n_kv_heads=96, d_head=128, d_ff=49152, gated=False,
        vocabulary=50257, context=2048, tied=True,
        source="Brown et al. 2020, table 2.1 and section 2.1; counted dense, though half of its layers are sparse",
    ),
    Configuration(
        "LLaMA 7B", layers=32, d_model=4096, n_heads=32, n_kv_heads=32, d_head=128, d_ff=11008, gated=True,
        vocabulary=32000, context=2048,
        source="Touvron et al. 2023a (LLaMA), table 2; d_ff, vocabulary and context: released configuration",
    ),
    Configuration(
        "Llama 2 70B", layers=80, d_model=8192, n_heads=64, n_kv_heads=8, d_head=128, d_ff=28672, gated=True,
        vocabulary=32000, context=4096,
        source="Touvron et al. 2023b (Llama 2), table 1 and appendix A.2.1; sizes: config.json of Llama-2-70b-hf",
    ),
    Configuration(
        "Llama 3 8B", layers=32, d_model=4096, n_heads=32, n_kv_heads=8, d_head=128, d_ff=14336, gated=True,
        vocabulary=128256, context=8192,
        source="Grattafiori et al. 2024 (Llama 3), table 3; vocabulary and context: config.json of Meta-Llama-3-8B",
    ),
    Configuration(
        "Llama 3 70B", layers=80, d_model=8192, n_heads=64, n_kv_heads=8, d_head=128, d_ff=28672, gated=True,
        vocabulary=128256, context=8192,
        source="Grattafiori et al. 2024 (Llama 3), table 3; vocabulary and context: config.json of Meta-Llama-3-70B",
    ),
    Configuration(
        "Mistral 7B", layers=32, d_model=4096, n_heads=32, n_kv_heads=8, d_head=128, d_ff=14336, gated=True,
        vocabulary=32000, context=8192, window=4096,
        source="Jiang et al. 2023 (Mistral 7B), table 1",
    ),
    Configuration(
        "Falcon 7B", layers=32, d_model=4544, n_heads=71, n_kv_heads=1, d_head=64, d_ff=18176, gated=False,
        vocabulary=65024, context=2048, tied=True,
        source="model card and config.json of tiiuae/falcon-7b; d_ff is 4·d_model",
    ),
    Configuration(
        "Qwen2.5 7B", layers=28, d_model=3584, n_heads=28, n_kv_heads=4, d_head=128, d_ff=18944, gated=True,
        vocabulary=152064, context=131072,
        source="Qwen team 2024 (Qwen2.5), table 1; sizes: config.json of Qwen2.5-7B",
    ),
    Configuration(
        "Gemma 2B", layers=18, d_model=2048, n_heads=8, n_kv_heads=1, d_head=256, d_ff=16384, gated=True,
        vocabulary=256000, context=8192, tied=True,
        source="Gemma team 2024, table 1 (whose 32768 counts both halves of the gated layer); config.json of gemma-2b",
    ),
    Configuration(
        "Gemma 2 9B", layers=42, d_model=3584, n_heads=16, n_kv_heads=8, d_head=256, d_ff=14336, gated=True,
        vocabulary=256000, context=8192, window=4096, full_every=2, tied=True,
        source="Gemma team 2024 (Gemma 2), table 1; sizes: gemma/config.py of the released code",
    ),
    Configuration(
        "Qwen3 4B", layers=36, d_model=2560, n_heads=32, n_kv_heads=8, d_head=128, d_ff=9728, gated=True,
        vocabulary=151936, context=32768, tied=True,
        source="Qwen team 2025 (Qwen3), table 1 and section 3.2 (context before YaRN); sizes: config.json of Qwen3-4B",
    ),
    Configuration(
        "Qwen3 8B", layers=36, d_model=4096, n_heads=32, n_kv_heads=8, d_head=128, d_ff=12288, gated=True,
        vocabulary=151936, context=32768,
        source="Qwen team 2025 (Qwen3), table 1 and section 3.2 (context before YaRN); sizes: config.json of Qwen3-8B",
    ),
    Configuration(
        "Gemma 3 1B", layers=26, d_model=1152, n_heads=4, n_kv_heads=1, d_head=256, d_ff=6912, gated=True,
        vocabulary=262144, context=32768, window=512, full_every=6, tied=True,
        source="Gemma team 2025 (Gemma 3), section 2 and table 1; sizes: gemma/config.py of the released code",
    ),
    Configuration(
        "DeepSeek-V2", layers=60, d_model=5120, n_heads=128, n_kv_heads=128, d_head=128, d_ff=None, gated=None,
        vocabulary=102400, context=131072, d_latent=512, d_rope=64,
        source="DeepSeek-AI 2024a (DeepSeek-V2), sections 3.1.2 and 3.1.4 (context), table 1; vocabulary: config.json",
    ),
    Configuration(
        "DeepSeek-V3", layers=61, d_model=7168, n_heads=128, n_kv_heads=128, d_head=128, d_ff=None, gated=None,
        vocabulary=129280, context=131072, d_latent=512, d_rope=64,
        source="DeepSeek-AI 2024b (DeepSeek-V3), sections 4.2 and 4.3 (context); vocabulary: config.json",
    ),
    # Of 2025, for day 4
    Configuration(
        "Qwen3 0.6B", layers=28, d_model=1024, n_heads=16, n_kv_heads=8, d_head=128, d_ff=3072, gated=True,
        vocabulary=151936, context=32768, tied=True,
        source="Qwen team 2025 (Qwen3), table 1 and section 3.2 (context before YaRN); sizes: config.json",
    ),
    Configuration(
        "gpt-oss-120b", layers=36, d_model=2880, n_heads=64, n_kv_heads=8, d_head=64, d_ff=None, gated=None,
        vocabulary=201088, context=131072, window=128, full_every=2,
        source="OpenAI 2025 (gpt-oss model card), section 2; sizes: config.json of gpt-oss-120b",
    ),
]  # fmt: skip

MODELS = {model.name: model for model in _ALL}


def model(name: str) -> Configuration:
    """Return the configuration of that name. Raises ValueError that lists the names there are."""
    if name not in MODELS:
        raise ValueError(f"no model {name!r}; there are {', '.join(MODELS)}")
    return MODELS[name]
