"""A small model in place of the real one: random weights, and tokens that are letters."""

import torch

from course_utils.models.decoder import Decoder
from course_utils.models.pretrained.tokenizer import Tokenizer, byte_letters
from course_utils.models.real import Real


def of_letters(
    layers: int = 2, heads: int = 3, kv_heads: int | None = None, d_ff: int = 0, gated: bool = False
) -> Real:
    """The model; a text of T letters has T tokens, of up to 64."""
    letters = [*byte_letters().values()]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Decoder(len(letters), 8 * heads, layers, heads, kv_heads, d_ff, gated=gated)
    return Real("tiny", model.eval().requires_grad_(False), Tokenizer(letters, []), 0, 64)
