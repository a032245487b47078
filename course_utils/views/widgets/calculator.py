"""Weights and KV cache of a real model against the memory of a card."""

from __future__ import annotations

import math
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils.attention.shapes import whole
from course_utils.costs.configurations import MODELS, Configuration, model
from course_utils.costs.memory import in_binary_units
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CONTEXTS = [2**power for power in range(8, 18)]  # the positions of the slider for the context, 256 to 131,072
_BATCHES = [*range(1, 65), 96, 128, 192, 256]
_WIDTHS = {4: "fp32, 4 bytes", 2: "fp16 or bf16, 2 bytes", 1: "fp8 or int8, 1 byte"}
OWN = "my own sizes"
_FIELDS = {  # of one's own sizes, and how the page calls them
    "layers": "layers",
    "n_kv_heads": "heads of keys and values",
    "d_head": "d_head",
    "window": "window, tokens (or empty)",
    "latent": "latent of MLA (or empty)",
    "rotary": "its key for RoPE",
    "billions": "parameters, 10⁹ (or empty)",
}
_START = {"layers": 36, "n_kv_heads": 8, "d_head": 128, "billions": 8}
_LARGEST = 10**7
CARDS = {"24 GiB": 24 * 2**30, "48 GiB": 48 * 2**30, "80 GiB": 80 * 2**30, "8 × 80 GiB": 640 * 2**30}


class MemoryCalculator(CourseWidget):
    """How much of a card's memory a model's weights and its KV cache take.

    model: one of costs.configurations.MODELS, or "my own sizes", which are those in own: a dict with layers, n_kv_heads
    and d_head, or with layers, latent and rotary for multi-head latent attention, and perhaps window, and billions, the
    model's parameters in 10⁹; giving it chooses them. context: tokens of each sequence. batch: sequences.
    bytes_per_value: 1, 2 or 4, of a number in the cache; the weights are counted at 2 bytes each. n_kv_heads: heads
    of keys and values, a divisor of the query heads; the model's own when left out or set to None. Fewer of them make
    W_K and W_V smaller, too. card: one of `CARDS`. All can be read and set; the page's slider for the context goes
    through the powers of two. `.cache_bytes` and `.weight_bytes` are in bytes, weight_bytes None for a model whose
    weights the course does not count; `.fits` says whether both together fit, None where that is not known;
    `.longest` is the most tokens of each sequence that do, None likewise. Weights are without biases and norms (under
    1%), and nothing is kept for activations. A page without a kernel counts the same itself.
    Raises ValueError or TypeError for what there is not.
    """

    in_gallery = InGallery(52, "Fill a card", question="At which batch does the cache outgrow the weights?")

    _esm = script("calculator.js")
    _css = style("bars.css", "calculator.css")

    model = traitlets.Unicode("LLaMA 7B").tag(sync=True)
    context = traitlets.Any(4096).tag(sync=True)
    batch = traitlets.Any(1).tag(sync=True)
    bytes_per_value = traitlets.Int(2).tag(sync=True)
    n_kv_heads = traitlets.Any(None).tag(sync=True)
    card = traitlets.Unicode("80 GiB").tag(sync=True)
    own = traitlets.Dict(_START)
    _typed = traitlets.Dict().tag(sync=True)  # what is in the fields
    _problem = traitlets.Unicode().tag(sync=True)
    _layout = traitlets.Dict().tag(sync=True)
    _shown = traitlets.Dict().tag(sync=True)

    def __init__(
        self, model="LLaMA 7B", context=4096, batch=1, bytes_per_value=2, n_kv_heads=None, card="80 GiB", own=None
    ):  # fmt: skip
        layout = {
            "models": [*MODELS, OWN],
            "own": OWN,
            "fields": list(_FIELDS.items()),
            "contexts": _CONTEXTS,
            "batches": _BATCHES,
            "widths": [[width, name] for width, name in _WIDTHS.items()],
            "cards": list(CARDS),
            "groups": {name: _divisors(each) for name, each in MODELS.items()} | {OWN: []},
        }
        super().__init__(_layout=layout, _typed=_texts(_START), model=model, card=card, context=context, batch=batch)
        if own is not None:
            self.own = own
            self.model = OWN
        self.bytes_per_value = bytes_per_value
        self.n_kv_heads = n_kv_heads
        self._count()

    @property
    def cache_bytes(self) -> float:
        """Bytes of keys and values of the whole batch; a sliding window keeps its last tokens only."""
        return self._cache(self.context)

    @property
    def weight_bytes(self) -> float | None:
        """Bytes of the model's weights at 2 bytes each, or None where the course does not count them."""
        if self.model == OWN:
            billions = self.own.get("billions")
            return None if billions is None else round(2e9 * billions)
        configuration = self._configuration()
        if configuration.d_ff is None:
            return None
        return 2 * replace(configuration, n_kv_heads=self._heads()).parameters()

    @property
    def fits(self) -> bool | None:
        """Whether weights and cache fit the card together, or None."""
        return None if self.weight_bytes is None else self.weight_bytes + self.cache_bytes <= CARDS[self.card]

    @property
    def longest(self) -> float | None:
        """The most tokens of each sequence whose cache fits beside the weights, 0 for none, or None if not known.

        Infinite for a sliding window that fits as a whole: its cache grows no further.
        """
        if self.weight_bytes is None:
            return None
        room = CARDS[self.card] - self.weight_bytes
        window = self._configuration().window
        longest = max(0, room // self._cache(1))
        if window is None or longest < window:
            return longest
        further = self._cache(window + 1) - self._cache(window)  # what a token adds once the windows are full
        return window + (room - self._cache(window)) // further if further else math.inf

    @traitlets.validate("model")
    def _model_exists(self, proposal):
        return OWN if proposal.value == OWN else model(proposal.value).name

    @traitlets.validate("card")
    def _card_exists(self, proposal):
        if proposal.value not in CARDS:
            raise ValueError(f"no card {proposal.value!r}; there are {', '.join(CARDS)}")
        return proposal.value

    @traitlets.validate("context", "batch")
    def _whole_number(self, proposal):
        return whole(proposal.trait.name, proposal.value)

    @traitlets.validate("bytes_per_value")
    def _width_exists(self, proposal):
        if proposal.value not in _WIDTHS:
            raise ValueError(f"bytes_per_value is {proposal.value}: give one of {', '.join(map(str, sorted(_WIDTHS)))}")
        return proposal.value

    @traitlets.validate("n_kv_heads")
    def _heads_divide(self, proposal):
        heads = proposal.value
        configuration = self._configuration()
        if heads is None:
            return None
        if self.model == OWN:
            raise ValueError("n_kv_heads of your own sizes stands in own: set that")
        if not _divisors(configuration):
            raise ValueError(f"{configuration.name} keeps a latent in place of keys and values: leave n_kv_heads out")
        if whole("n_kv_heads", heads) not in _divisors(configuration):
            raise ValueError(f"n_kv_heads is {heads}, which does not divide {configuration.n_heads} query heads")
        return heads

    @traitlets.validate("own")
    def _own_sizes(self, proposal):
        return _verify_sizes(proposal.value)

    @traitlets.observe("own")
    def _show_own(self, change):
        self._typed = _texts(self.own)
        self._problem = ""

    @traitlets.observe("_typed")
    def _read_typed(self, change):
        if change.new == _texts(self.own):
            self._problem = ""
            return
        try:
            self.own = {name: _parse_field(name, text) for name, text in change.new.items() if text.strip()}
            self._problem = ""
        except (ValueError, TypeError) as error:
            self._problem = f"{error}."

    @traitlets.observe("model")
    def _other_model(self, change):
        self.n_kv_heads = None

    @traitlets.observe("model", "context", "batch", "bytes_per_value", "n_kv_heads", "card", "own")
    def _count(self, change=None):
        self._shown = {
            "weights": self.weight_bytes,
            "cache": self.cache_bytes,
            "card": CARDS[self.card],
            "heads": self._heads(),
            "heads_told": "a latent" if self._configuration().d_latent else f"{self._heads()}",
            "lines": self._lines(),
            "parts": self._parts(),
        }

    def alone_state(self) -> dict[str, Any]:
        models = {name: {**asdict(each), "spans": each.spans, "source": ""} for name, each in MODELS.items()}
        known = {"models": models, "cards": CARDS, "fields": _FIELDS, "largest": _LARGEST, "start": dict(self.own)}
        return {"_alone": known}

    def as_text(self) -> str:
        heads = "" if self.n_kv_heads is None else f", {self.n_kv_heads} heads of keys and values"
        settings = (
            f"{self.model}{heads}, context {self.context:,}, batch {self.batch:,}, {_WIDTHS[self.bytes_per_value]}"
        )
        return "\n".join([f"memory calculator: {settings}, card of {self.card}", *self._parts(), *self._lines()])

    def alt(self) -> str:
        return f"One bar for the memory of {self.card}. {' '.join([*self._parts(), *self._lines()])}"

    def figure(self) -> Figure:
        fig = new_figure(820, 170)
        ax = fig.add_axes((0.02, 0.46, 0.96, 0.32))
        weights, cache, card = (
            number / 2**30 for number in (self.weight_bytes or 0, self.cache_bytes, CARDS[self.card])
        )
        end = max(weights + cache, card) * 1.03
        ax.barh(0, weights, color=palette.INK, height=0.8, label=self._parts()[0])
        ax.barh(0, cache, left=weights, color=palette.VALUE, height=0.8, label=self._parts()[1])
        ax.axvline(card, color=palette.INK, linewidth=2.5, label=f"card: {self.card}")
        ax.set(xlim=(0, end), ylim=(-0.7, 0.7), yticks=[])
        ax.set_xlabel("GiB", loc="right")
        ax.spines["left"].set_visible(False)
        ax.set_title(f"{self.model}, context {self.context:,}, batch {self.batch:,}")
        fig.legend(loc="lower center", ncols=3, fontsize=10)
        return fig

    def _cache(self, T):
        configuration = replace(self._configuration(), n_kv_heads=self._heads())
        return configuration.cache_bytes(T, self.batch, self.bytes_per_value)

    def _configuration(self):
        if self.model != OWN:
            return MODELS[self.model]
        heads = self.own.get("n_kv_heads", 1)
        d_head = self.own.get("d_head", 1)
        return Configuration(
            OWN, self.own["layers"], heads * d_head, heads, heads, d_head, d_ff=None, gated=None, vocabulary=1,
            context=sys.maxsize, source="typed in", window=self.own.get("window"),
            d_latent=self.own.get("latent"), d_rope=self.own.get("rotary"),
        )  # fmt: skip

    def _heads(self):
        return self.n_kv_heads or self._configuration().n_kv_heads

    def _parts(self):
        weights = "not counted here" if self.weight_bytes is None else in_binary_units(self.weight_bytes)
        return [f"weights: {weights}", f"cache: {in_binary_units(self.cache_bytes)}"]

    def _lines(self):
        """How the bytes of the cache come about, and whether all fits."""
        configuration = self._configuration()
        if configuration.d_latent:
            token = f"({configuration.d_latent} latent + {configuration.d_rope} rotary)"
        else:
            token = f"2 × {self._heads()} heads × {configuration.d_head}"
        sequences = _count_of(self.batch, "sequence")
        width = _count_of(self.bytes_per_value, "byte")
        product = f"{token} × {self._describe_tokens()} × {sequences} × {width}"
        return [f"cache = {product} = {in_binary_units(self.cache_bytes)}.", self._describe_fit()]

    def _describe_tokens(self):
        """The tokens that all layers keep, as a product, or as a sum where some layers have a window."""
        terms = []
        for layers, window in self._configuration().spans:
            full = window is None or self.context <= window
            words = f"{self.context:,} tokens" if full else f"{window:,} tokens (the window keeps the last {window:,})"
            terms.append(f"{layers} layers × {words}")
        return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"

    def _describe_fit(self):
        weights = self.weight_bytes
        if weights is None and self.model == OWN:
            return "Without the number of parameters nothing can be said about the card."
        if weights is None:
            return "The course does not count the weights of this model, so nothing can be said about the card."
        together = in_binary_units(weights + self.cache_bytes)
        if weights > CARDS[self.card]:
            return f"The weights alone are more than {self.card}."
        return f"Together {together} of {self.card}: {'fits' if self.fits else 'does not fit'}. {self._describe_room()}"

    def _describe_room(self):
        if self.longest == math.inf:
            return "At this batch the window fits, so the cache never grows beyond it."
        configuration = self._configuration()
        beyond = ""
        if self.longest > configuration.context:
            beyond = f", more than the {configuration.context:,} that the model was made for"
        return f"The card has room for {_count_of(self.longest, 'token')} a sequence{beyond}."


def _verify_sizes(own):
    """One's own sizes, if they make a cache."""
    if unknown := [name for name in own if name not in _FIELDS]:
        raise ValueError(f"own has {unknown[0]!r}: it knows {', '.join(_FIELDS)}")
    needed = ("layers", "latent", "rotary") if "latent" in own else ("layers", "n_kv_heads", "d_head")
    if missing := [_FIELDS[name] for name in needed if name not in own]:
        raise ValueError(f"{missing[0]} is missing")
    sizes = {name: whole(_FIELDS[name], size) for name, size in own.items() if name != "billions"}
    if "billions" in own:
        sizes["billions"] = own["billions"]
    for name, size in sizes.items():
        if not 0 < size <= _LARGEST:
            raise ValueError(f"{_FIELDS[name]} is {size:,.12g}: give a number above 0, up to {_LARGEST:,}")
    return sizes


def _parse_field(name, text):
    """Return the number that somebody typed into a field."""
    try:
        return float(text) if name == "billions" else int(text.replace(",", ""))
    except ValueError:
        kind = "a number" if name == "billions" else "a whole number"
        raise ValueError(f"{_FIELDS[name]} is “{text}”: give {kind}") from None


def _texts(own):
    return {name: f"{own[name]:g}" if name == "billions" else f"{own[name]}" for name in _FIELDS if name in own}


def _count_of(number, thing):
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _divisors(configuration):
    """The numbers of key and value heads that the query heads could share; none for a latent cache."""
    h = configuration.n_heads
    return [] if configuration.d_latent else [heads for heads in range(1, h + 1) if h % heads == 0]
