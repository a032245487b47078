"""Read a model from a GGUF file: its sizes, its tokenizer, and its weights, dequantized to float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gguf import GGUFReader, dequantize
from torch import Tensor

from course_utils.errors import CourseError

# For each tensor of GGUF's architecture llama, the name of its place in `decoder.Decoder`.
OF_MODEL = {
    "token_embd.weight": "embedding.weight",
    "output_norm.weight": "norm.weight",
    "output.weight": "unembedding.weight",
}
OF_BLOCK = {
    "attn_norm": "attention_norm",
    "attn_q": "attention.q_proj",
    "attn_k": "attention.k_proj",
    "attn_v": "attention.v_proj",
    "attn_output": "attention.out_proj",
    "ffn_norm": "feed_forward_norm",
    "ffn_gate": "feed_forward.gate",
    "ffn_up": "feed_forward.up",
    "ffn_down": "feed_forward.down",
}
CONTROL = 3  # GGUF's type of special tokens, which no text is encoded to


@dataclass(frozen=True)
class Contents:
    """Content of a model file apart from the weights.

    Attributes:
        sizes: arguments of `decoder.Decoder`.
        words: arguments of `tokenizer.Tokenizer`.
        end: number of the token that ends a turn.
        context: largest number of tokens that the model was trained for.
    """

    name: str
    licence: str
    sizes: dict[str, Any]
    words: dict[str, Any]
    end: int
    context: int


def contents(file: GGUFReader) -> Contents:
    """Return the sizes and the tokenizer of a model.

    Raises:
        CourseError: the course's layers cannot run the model; the message says why.
    """

    def value(key: str, *default: Any) -> Any:
        field = file.get_field(key)
        if field is None and not default:
            raise CourseError(f"the file has no {key}, which a model of this kind needs")
        return default[0] if field is None else field.contents()

    kind = value("general.architecture")
    words = value("tokenizer.ggml.model")
    if kind != "llama" or words != "gpt2":
        raise CourseError(f"the model is {kind} with a tokenizer {words}: the course runs llama with gpt2's")
    heads = value("llama.attention.head_count")
    width = value("llama.embedding_length")
    turned = value("llama.rope.dimension_count", width // heads)
    if width % heads or turned != width // heads or value("llama.attention.key_length", turned) != turned:
        raise CourseError(
            f"{heads} heads, width {width}, {turned} numbers turned: d_head is to be the width over heads"
        )
    tokens = value("tokenizer.ggml.tokens")
    sizes = {
        "vocabulary": len(tokens),
        "d_model": width,
        "n_layers": value("llama.block_count"),
        "n_heads": heads,
        "n_kv_heads": value("llama.attention.head_count_kv", heads),
        "d_ff": value("llama.feed_forward_length"),
        "rope_base": value("llama.rope.freq_base", 10000.0),
        "eps": value("llama.attention.layer_norm_rms_epsilon"),
        "gated": True,
        "tied": all(tensor.name != "output.weight" for tensor in file.tensors),
    }
    cut = value("tokenizer.ggml.pre", "gpt-2")
    types = value("tokenizer.ggml.token_type", [])
    entries = {
        "tokens": tokens,
        "merges": value("tokenizer.ggml.merges"),
        "special": [token for token, type_ in zip(tokens, types, strict=False) if type_ == CONTROL],
        "cut": cut,
        "template": value("tokenizer.chat_template", ""),
    }
    end = value("tokenizer.ggml.eos_token_id")
    licence = value("general.license", "not told")
    return Contents(value("general.name", "a model"), licence, sizes, entries, end, value("llama.context_length"))


def open_gguf(path: Path) -> GGUFReader:
    """Return a GGUF file, mapped into memory.

    Raises:
        CourseError: the file is missing, unreadable, damaged, or no GGUF file.
    """
    try:
        return GGUFReader(path)
    except FileNotFoundError:
        raise CourseError(f"{path}: there is no such file") from None
    except OSError as error:
        raise CourseError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, IndexError, TypeError, UnicodeDecodeError) as error:
        raise CourseError(f"{path}: no GGUF file, or a damaged one ({type(error).__name__}: {error})") from None


def weights(file: GGUFReader, n_layers: int, done: Callable[[int, int], None]) -> dict[str, Tensor]:
    """Return the weights in float32, by their names in `decoder.Decoder`.

    The two dimensions that RoPE rotates together are neighbours, as GGUF stores them for this architecture.

    Args:
        done: called after each tensor with the number of tensors read, and the number of all tensors.

    Raises:
        CourseError: a tensor is missing, or has no place in the model.
    """
    places = dict(_places(n_layers))
    tensors = {}
    for number, tensor in enumerate(file.tensors):
        if tensor.name not in places:
            raise CourseError(f"the file holds {tensor.name}, for which the course's model has no place")
        numbers = dequantize(tensor.data, tensor.tensor_type)
        tensors[places[tensor.name]] = torch.from_numpy(np.array(numbers, dtype=np.float32))
        done(number + 1, len(file.tensors))
    tensors.setdefault("unembedding.weight", tensors.get("embedding.weight", torch.empty(0)))
    missing = [theirs for theirs, ours in places.items() if ours not in tensors]
    if missing:
        raise CourseError(f"the file lacks {len(missing)} tensors, {missing[0]} for one")
    return tensors


def _places(n_layers: int) -> Iterator[tuple[str, str]]:
    yield from OF_MODEL.items()
    for layer in range(n_layers):
        for theirs, ours in OF_BLOCK.items():
            yield f"blk.{layer}.{theirs}.weight", f"blocks.{layer}.{ours}.weight"
