"""A small language model with random weights, made as the real one is, for tests where that is not there."""

import torch

from course_utils.models.decoder import Decoder
from course_utils.models.pretrained.tokenizer import Tokenizer, byte_letters
from course_utils.models.real import Real

TOKENS = ["<|end|>", *byte_letters().values(), "Ġt", "he", "Ġthe"]
MERGES = ["Ġ t", "h e", "Ġt he"]


def tiny_real(seed=0, d_model=32, n_layers=2, n_heads=4, n_kv_heads=2):
    """Its weights are larger than usual, so that its heads look at few tokens and what they do shows."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Decoder(len(TOKENS), d_model, n_layers, n_heads, n_kv_heads, 48, gated=True, tied=True)
        for weights in model.parameters():
            if weights.ndim == 2:
                torch.nn.init.normal_(weights, std=weights.shape[1] ** -0.5 * 2)
    model.eval().requires_grad_(False)
    return Real("tiny", model, Tokenizer(TOKENS, MERGES, TOKENS[:1]), 0, 256)
