"""One round of speculative decoding: drafted tokens, a coin for each, and the token that the target model adds.

A token x that the draft model drew from q is kept where its coin u < p(x) / q(x). In place of the first that is not,
one is drawn from the remainder (p − q)₊, made to sum to 1; where all are kept, one more is drawn from p. What comes out
is distributed as p (Leviathan, Kalman, Matias 2023; Chen et al. 2023).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import traitlets

from course_utils.attention.shapes import whole
from course_utils.views import palette
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style
from course_utils.views.shared.coerce import Numbers, as_labels, as_row
from course_utils.views.shared.number_text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_WORDS = 8
_MAX_DRAFTED = 8
_LAST_SEED = 999_999
_STOPS = 20  # of the slider that moves q towards p


class Coin(NamedTuple):
    """A drafted token and its coin: kept where u < ratio, which is p / q."""

    token: int
    u: float
    ratio: float
    kept: bool


class Round(NamedTuple):
    """The result of a round. drafted: every token. coins: of those that were looked at. source: "p" or "remainder",
    which the last token was drawn from with `last_coin`. tokens: what the round gives, 1 to γ + 1 of them."""

    drafted: tuple[int, ...]
    coins: tuple[Coin, ...]
    source: str
    last_coin: float
    tokens: tuple[int, ...]


class SpeculativeStepper(CourseWidget):
    """A round of speculative decoding, token by token, over a small vocabulary.

    p, q: probabilities of the target and of the draft model, 2 to 8 each; a list, NumPy or torch. They are the same at
    every place, as of models without a memory, so that every drafted token is kept with the same probability
    α = Σ min(p, q). drafted: γ tokens, 1 to 8, as places in the vocabulary, each with q > 0. coins: γ + 1 numbers in
    [0, 1), one for each drafted token and one for the draw at the end. words: what the tokens are called.
    `.step`, `.nearness` (0 to 1: how far q is moved towards p) and `.seed` (None, or that of a round drawn anew) can be
    read and set. `.round`, `.alpha`, `.expected` (tokens a round) and `.remainder` follow from them.
    Raises ValueError or TypeError for what does not fit.
    """

    in_gallery = InGallery(
        73,
        "Let a drafter guess",
        question="What replaces a draft that is rejected, and what happens to the drafts after it?",
    )

    _esm = script("speculative.js")
    _css = style("bars.css", "player.css", "speculative.css")

    step = traitlets.Int(0, help="0 is the draft; each coin and the last draw are one more").tag(sync=True)
    nearness = traitlets.Any(0.0, help="how far q is moved towards p, 0 to 1").tag(sync=True)
    seed = traitlets.Any(None, allow_none=True, help="None, or the seed of a round drawn anew").tag(sync=True)
    words = traitlets.List(traitlets.Unicode(), read_only=True).tag(sync=True)
    _given = traitlets.Dict().tag(sync=True)
    _limits = traitlets.Dict({"last_seed": _LAST_SEED, "stops": _STOPS}).tag(sync=True)

    def __init__(
        self, p: Numbers, q: Numbers, drafted: Sequence[int], coins: Sequence[float], words: Sequence[str] | None = None
    ):
        target = _distribution("p", p)
        draft = _distribution("q", q)
        size = len(target)
        if len(draft) != size:
            raise ValueError(f"p has {size} numbers and q has {len(draft)}: one for each token of the same vocabulary")
        labels = [f"token {i}" for i in range(size)] if words is None else as_labels("words", words)
        if len(labels) != size:
            raise ValueError(f"there are {len(labels)} words and {size} probabilities: one each")
        tokens = _verify_draft(drafted, draft)
        self.set_trait("words", labels)
        super().__init__(_given={"p": target, "q": draft, "drafted": tokens, "coins": _coins(coins, len(tokens) + 1)})

    @property
    def q(self) -> np.ndarray:
        """What the draft model draws from, moved towards p: (V,) float64."""
        return np.array(move_towards(self._given["p"], self._given["q"], self.nearness))

    @property
    def round(self) -> Round:
        """The round with these drafted tokens and coins."""
        setup = self._given
        if self.seed is None:
            return play_round(setup, setup["drafted"], setup["coins"], self.nearness)
        return draw_round(setup, self.seed, self.nearness)

    @property
    def last(self) -> int:
        """The last step: a coin each, and the draw at the end."""
        return len(self.round.coins) + 1

    @property
    def alpha(self) -> float:
        """Σ min(p, q), with what probability a drafted token is kept."""
        return overlap(self._given["p"], self.q.tolist())

    @property
    def expected(self) -> float:
        """The expected number of tokens per round: (1 − α^(γ+1)) / (1 − α), or γ + 1 where α is 1."""
        return expected_tokens(self.alpha, len(self._given["drafted"]))

    @property
    def remainder(self) -> np.ndarray | None:
        """(p − q)₊ scaled to sum to 1: (V,) float64; None where q is p. It is the same however far q has moved."""
        rest = remainder(self._given["p"], self._given["q"])
        return None if rest is None else np.array(rest)

    @traitlets.validate("step")
    def _step_exists(self, proposal):
        if not 0 <= proposal.value <= self.last:
            raise ValueError(f"step is {proposal.value}: give 0 to {self.last}")
        return proposal.value

    @traitlets.validate("nearness")
    def _nearness_fits(self, proposal):
        try:
            nearness = float(proposal.value)
        except (TypeError, ValueError):
            raise ValueError(f"nearness is {proposal.value!r}: give a number from 0 to 1") from None
        if not 0 <= nearness <= 1:
            raise ValueError(f"nearness is {nearness:g}: give a number from 0 to 1")
        return nearness

    @traitlets.validate("seed")
    def _seed_fits(self, proposal):
        if proposal.value is None:
            return None
        seed = whole("seed", proposal.value, least=0)
        if seed > _LAST_SEED:
            raise ValueError(f"seed is {seed}: give None or 0 to {_LAST_SEED}")
        return seed

    @traitlets.observe("nearness", "seed")
    def _stay_within(self, change):
        self.step = 0 if change.name == "seed" else min(self.step, self.last)

    def as_text(self) -> str:
        wide = max(5, *map(len, self.words))
        rest = self.remainder
        lines = [self._head(), f"{'token':{wide}}     p     q  min(p, q)  (p − q)₊ / sum"]
        for i, (word, p, q) in enumerate(zip(self.words, self._given["p"], self.q, strict=True)):
            rest_text = "–" if rest is None else short(rest[i])
            lines.append(f"{word:{wide}}  {short(p)}  {short(q)}  {short(min(p, q)):>9}  {rest_text:>14}")
        return "\n".join(
            [*lines, *(f"Step {step} of {self.last}. {self.describe(step)}" for step in range(self.last + 1))]
        )

    def describe(self, step: int) -> str:
        """Describe what happens at a step."""
        result = self.round
        gamma = len(self._given["drafted"])
        words = [f"“{self.words[token]}”" for token in result.drafted]
        if step == 0:
            return f"The drafter drew {_count_of(gamma, 'token')} from q: {', '.join(words)}."
        if step <= len(result.coins):
            coin = result.coins[step - 1]
            bound = f"p/q = {short(coin.ratio)}"
            if coin.kept:
                why = f"and the coin {short(coin.u)} is below it: kept"
                if coin.ratio >= 1:
                    why = f"which is at least 1: always kept, and the coin {short(coin.u)} is not needed"
                return f"Token {step}, {words[step - 1]}: {bound}, {why}."
            lost = gamma - step
            tail = ("", " The one after it is dropped.")[lost] if lost < 2 else f" The {lost} after it are dropped."
            head = f"Token {step}, {words[step - 1]}: {bound}, and the coin {short(coin.u)} is not below it"
            return f"{head}: rejected.{tail}"
        drew = f"the coin {short(result.last_coin)} draws “{self.words[result.tokens[-1]]}”."
        gives = f"This round gives {_count_of(len(result.tokens), 'token')}."
        if result.source == "p":
            are = "It is" if gamma == 1 else f"All {gamma} are"
            return f"{are} kept, so one more comes from p: {drew} {gives}"
        return f"Its replacement comes from the remainder (p − q)₊, scaled to sum to 1: {drew} {gives}"

    def alt(self) -> str:
        return f"{self._head()} {' '.join(self.describe(step) for step in range(self.last + 1))}"

    def figure(self) -> Figure:
        p, q, rest = np.array(self._given["p"]), self.q, self.remainder
        count = len(p)
        wide = 760
        lines = [line for step in range(self.last + 1) for line in textwrap.wrap(self.describe(step), 112)]
        top = 62
        plot = 34 * count
        height = top + plot + 30 + 18 * len(lines) + 10
        fig = new_figure(wide, height)
        left = 8 * max(map(len, self.words)) + 24
        half = (wide - left - 40) // 2
        most = max(p.max(), q.max(), rest.max() if rest is not None else 0) * 1.25
        for place, title in enumerate(("p (blue) and q (grey)", "the remainder (p − q)₊, scaled to sum to 1")):
            box = ((left + place * (half + 24)) / wide, 1 - (top + plot) / height, half / wide, plot / height)
            ax = fig.add_axes(box)
            ax.set(xlim=(0, most), ylim=(count - 0.5, -0.5), xticks=[])
            ax.set_yticks(range(count), self.words if place == 0 else [""] * count, parse_math=False)
            ax.set_title(title)
            ax.spines[["top", "right", "bottom"]].set_visible(False)
            ax.tick_params(length=0)
            both = [(p, palette.WEIGHT, -0.19), (q, palette.INK, 0.19)]
            rest_bars = [] if rest is None else [(rest, palette.OUTPUT, 0.0)]
            for values, colour, shift in both if place == 0 else rest_bars:
                bars = ax.barh(np.arange(count) + shift, values, color=colour, height=0.36)
                ax.bar_label(bars, [short(value) for value in values], fontsize=10, padding=3)
        text: dict[str, Any] = {"parse_math": False, "va": "center"}
        fig.text(12 / wide, 1 - 18 / height, self._head(), fontweight="bold", **text)
        for place, line in enumerate(lines):
            fig.text(12 / wide, 1 - (top + plot + 30 + 18 * place) / height, line, **text)
        return fig

    def _head(self):
        gamma = len(self._given["drafted"])
        return (
            f"Speculative decoding, γ = {gamma}: α = Σ min(p, q) = {short(self.alpha)}, "
            f"{short(self.expected)} tokens a round expected."
        )


# --- the arithmetic, which speculative_round.js does too --------------------------------------------------------------


def move_towards(p: Sequence[float], q: Sequence[float], nearness: float) -> list[float]:
    """Return q moved towards p by `nearness`."""
    return [(1 - nearness) * theirs + nearness * ours for ours, theirs in zip(p, q, strict=True)]


def overlap(p: Sequence[float], q: Sequence[float]) -> float:
    """α = Σ min(p, q)."""
    return min(1.0, float(sum(map(min, p, q))))


def expected_tokens(alpha: float, gamma: int) -> float:
    """1 + α + … + α^γ, which is (1 − α^(γ+1)) / (1 − α): tokens a round."""
    return float(sum(alpha**power for power in range(gamma + 1)))


def remainder(p: Sequence[float], q: Sequence[float]) -> list[float] | None:
    """(p − q)₊ scaled to sum to 1; None where there is nothing of it."""
    excess = [max(0.0, ours - theirs) for ours, theirs in zip(p, q, strict=True)]
    total = sum(excess)
    return [part / total for part in excess] if total > 1e-12 else None


def draw(weights: Sequence[float], u: float) -> int:
    """Return the token on whose part of the scale from 0 to 1 a coin falls."""
    total = 0.0
    for token, weight in enumerate(weights):
        total += weight
        if u < total:
            return token
    return max(token for token, weight in enumerate(weights) if weight > 0)


def play_round(setup: dict[str, Any], drafted: Sequence[int], coins: Sequence[float], nearness: float) -> Round:
    """Return a round with these drafted tokens and coins."""
    p, q, rest = setup["p"], move_towards(setup["p"], setup["q"], nearness), remainder(setup["p"], setup["q"])
    looked: list[Coin] = []
    for token, u in zip(drafted, coins[:-1], strict=True):
        ratio = p[token] / q[token] if p[token] and rest else float(p[token] > 0)
        looked.append(Coin(token, u, ratio, u < ratio))
        if not looked[-1].kept:
            break
    accepted = [coin.token for coin in looked if coin.kept]
    source = "p" if len(accepted) == len(drafted) or rest is None else "remainder"
    last = draw(p if source == "p" else rest or p, coins[-1])
    return Round(tuple(drafted), tuple(looked), source, coins[-1], (*accepted, last))


def draw_round(setup: dict[str, Any], seed: int, nearness: float) -> Round:
    """Return a round with tokens drafted from q and coins, all of this seed."""
    gamma = len(setup["drafted"])
    chance = mulberry(seed)
    q = move_towards(setup["p"], setup["q"], nearness)
    drafted = [draw(q, chance()) for _ in range(gamma)]
    return play_round(setup, drafted, [chance() for _ in range(gamma + 1)], nearness)


def mulberry(seed: int) -> Callable[[], float]:
    """Return the numbers in [0, 1), the same here and on a page: Mulberry32 (Tommy Ettinger, 2017)."""
    state = seed
    most = 0xFFFFFFFF

    def following() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & most
        mixed = ((state ^ state >> 15) * (state | 1)) & most
        mixed ^= (mixed + ((mixed ^ mixed >> 7) * (mixed | 61) & most)) & most
        return (mixed ^ mixed >> 14) / 2**32

    return following


# --- the inputs -----------------------------------------------------------------------------------------------------


def _distribution(name, values):
    row = as_row(name, values, 2, _MAX_WORDS)
    total = row.sum()
    if not np.isfinite(row).all() or (row < 0).any() or abs(total - 1) > 1e-4:
        raise ValueError(f"{name} is {row.tolist()}: give probabilities, none below 0, which sum to 1")
    return (row / total if abs(total - 1) > 1e-12 else row).tolist()


def _verify_draft(drafted, q):
    tokens = [whole("a drafted token", token, least=0) for token in drafted]
    if not 1 <= len(tokens) <= _MAX_DRAFTED:
        raise ValueError(f"{len(tokens)} tokens are drafted: give 1 to {_MAX_DRAFTED}")
    for token in tokens:
        if token >= len(q):
            raise ValueError(f"token {token} is drafted, and the vocabulary has tokens 0 to {len(q) - 1}")
        if not q[token]:
            raise ValueError(f"token {token} is drafted, and its q is 0: the draft model cannot draw it")
    return tokens


def _coins(coins, count):
    row = as_row("coins", coins, count, count)
    if not ((row >= 0) & (row < 1)).all():
        raise ValueError(f"coins are {row.tolist()}: give numbers from 0 up to, but not including, 1")
    return row.tolist()


def _count_of(number, name):
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
