"""The real model at work: it answers, continues texts, and shows what each of its heads looks at.

`load()` gives SmolLM2-135M-Instruct (30 layers of 9 heads, 134.5 million weights), or the GGUF file that COURSE_MODEL
names, as a `decoder.Decoder` of the course's own layers. Where it is not on this machine, `missing()` says in one line
how to get it. Source: Allal et al. 2025 (SmolLM2).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from course_utils.attention.cache import Cache, ContiguousCache
from course_utils.attention.shapes import whole
from course_utils.models.decoder import PARTS, Decoder, generate, new_caches, put_parts
from course_utils.models.pretrained import store
from course_utils.models.pretrained.tokenizer import Tokenizer

OWN = (*PARTS, "writes")  # what of it can be somebody's own


@dataclass(frozen=True)
class Real:
    """A pretrained model with its tokenizer. end is the token that ends a turn, context the most tokens it can take.

    writes(model, tokens, most) gives the list of tokens that follow, where somebody's own function chooses them.
    """

    name: str
    model: Decoder
    tokenizer: Tokenizer
    end: int
    context: int
    writes: Callable[[Decoder, Sequence[int], int], list[int]] | None = None

    def with_parts(self, parts: Mapping[str, Callable], layers: Sequence[int] | None = None) -> Real:
        """Return the same model with somebody's own functions in these layers, or in all; both share their weights.

        parts by name: those of `decoder.put_parts`, and `writes`. Raises ValueError for a name or a layer that is
        not there, and for `writes` in some layers only: it works with the whole model.
        """
        if "writes" in parts and layers is not None:
            raise ValueError("writes works with the whole model: leave the layers out")
        model = copy.deepcopy(self.model, {id(weights): weights for weights in self.model.parameters()})
        put_parts(model, {name: part for name, part in parts.items() if name != "writes"}, layers)
        return replace(self, model=model, writes=parts.get("writes", self.writes))

    def answer(self, message: str, most: int = 64) -> str:
        """What the model answers to one turn, the likeliest token each time: its text, of at most `most` tokens."""
        return self.tokenizer.decode(self.stream(self.tokenizer.chat(message), most))

    def stream(self, tokens: Sequence[int], most: int, caches: Sequence[Cache] | None = None) -> Iterator[int]:
        """The likeliest tokens after these, one by one, until the turn ends or there are `most`.

        caches are one a layer, empty, with room for all; `ContiguousCache`s when left out. Raises ValueError for no
        tokens, or more than the model's context, and as `decoder.generate` does.
        """
        if not 0 < len(tokens) <= self.context - whole("most", most):
            raise ValueError(f"{len(tokens)} tokens and {most} more: the model takes from 1 to {self.context} in all")
        if self.writes:
            for token in self.writes(self.model, tokens, most):
                if token == self.end:
                    return
                yield token
            return
        if caches is None:
            caches = new_caches(self.model, ContiguousCache, 1, capacity=len(tokens) + most)
        newest = torch.tensor([list(tokens)])  # (1, T)
        for _ in range(most):
            newest = generate(self.model, newest, 1, caches)  # (1, 1)
            if newest.item() == self.end:
                return
            yield int(newest)

    @torch.no_grad()
    def look(self, text: str) -> tuple[list[str], Tensor, Tensor]:
        """Return the tokens of a text, where each head looks, and what may come next: (tokens, weights, logits).

        tokens is a list of T texts; weights (layers, heads, T, T), logits (T, vocabulary).
        """
        numbers = self.encode(text)
        logits, weights = self.model(numbers, return_weights=True)
        return self.tokenizer.texts(numbers[0].tolist()), torch.cat(weights), logits[0]

    @torch.no_grad()
    def loss(self, text: str, **options: object) -> float:
        """The mean loss in nats a token of a text, each token scored from those before it. options go to the model."""
        numbers = self.encode(text)
        return F.cross_entropy(self.model(numbers, **options)[0, :-1].float(), numbers[0, 1:]).item()

    def encode(self, text: str) -> Tensor:
        """The numbers of a text's tokens, (1, T) int64. Raises ValueError for no token, or more than the context."""
        numbers = self.tokenizer.encode(text)
        if not 0 < len(numbers) <= self.context:
            raise ValueError(f"the text has {len(numbers)} tokens: the model takes from 1 to {self.context}")
        return torch.tensor([numbers])


class _Unfilled(TorchFunctionMode):
    """Layers that are made within keep the memory as it is. The meta device would do, but takes seconds to load."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(function, "__module__", "") == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return function(*args, **(kwargs or {}))


@lru_cache(2)
def load(dtype: torch.dtype = torch.float32) -> Real:
    """The model on this machine, in float32 or bfloat16; its weights are mapped into memory and shared by all calls.

    Raises `store.NoModel` where it is not there, CourseError for a damaged file or one that cannot be run.
    """
    description, weights = store.read(dtype)
    with _Unfilled():
        model = Decoder(**description.sizes)
    model.load_state_dict(weights, assign=True)
    model.eval().requires_grad_(False)
    return Real(description.name, model, Tokenizer(**description.words), description.end, description.context)


def missing() -> str:
    """One line on how to get the model where it is not on this machine, else nothing."""
    try:
        there = store.model_path().exists() or store.chosen() is not None
    except store.NoModel as error:
        return str(error)
    return "" if there else store.HOW
