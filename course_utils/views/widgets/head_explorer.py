"""Where any head of the real model looks, in a sentence of one's own or in one that was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import traitlets

from course_utils.models import real, real_sentences
from course_utils.models.real_sentences import LEVELS
from course_utils.views.shared.base import CourseWidget, InGallery, ramp_trait, script, style
from course_utils.views.shared.coerce import as_head, as_labels
from course_utils.views.shared.heads import head_name
from course_utils.views.shared.number_text import short
from course_utils.views.silence import hide_prints
from course_utils.views.widgets.head_explorer_picture import draw

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST = 24  # tokens of a sentence
_LONGEST = 400  # its letters
_LISTED = 5  # so many of the sorted heads, and of a query's keys, are in the text
_PROBLEM = 200  # letters of a message
_ALONE = 100_000  # weights that a page without a kernel may hold, a byte each
_MEASURES = {  # what heads are sorted by: the share of attention that goes …
    "pair": "from the chosen query to the chosen key",
    "before": "to the token before",
    "first": "to the first token",
    "itself": "to the token itself",
    "again": "to what followed the same token before",
}


class HeadExplorer(CourseWidget):
    """All heads of a real language model at work on a sentence: one in full, all sorted by what they do there.

    text: a recorded sentence, `HeadExplorer.recorded()`, which is the same on every machine and needs no model, or any
        other of 2 to 24 tokens, which the model reads. head: (layer, head); when left out, the one that the last token
        lets look most sharply at another than the first. model: a `real.Real` that reads all sentences, in place of
        the one on this machine.
    `.head`, `.query`, `.key` (places of tokens) and `.measure` can be read and set, and the page sets them. measure is
    what heads are sorted by, a share of attention: "pair" from the query to the key, or averaged over the tokens
    after the first "before" (to the token before), "first", "itself", "again" (to what followed the same token before).
    `.look(text)` takes another sentence; `.tokens`, `.weights` and `.ranked()` tell what is shown. Weights are rounded
    to 1/255. Raises ValueError for what cannot be shown, `store.NoModel` where the model is needed and not here.
    """

    in_gallery = InGallery(
        41,
        "See where a real model looks",
        question="Where does *it* look when the animal was too tired, and where when the street was too wide?",
    )

    _esm = script("head_explorer.js")
    _css = style("heads.css", "head_explorer.css")

    head = traitlets.Any(help="the head shown, (layer, head)").tag(sync=True)
    query = traitlets.Int(help="the chosen token").tag(sync=True)
    key = traitlets.Int(help="the token that it looks at").tag(sync=True)
    measure = traitlets.Enum([*_MEASURES], "pair", help="what heads are sorted by").tag(sync=True)
    title = traitlets.Unicode("where the heads of a real model look").tag(sync=True)
    _shown = traitlets.Dict().tag(sync=True)
    _offered = traitlets.List(traitlets.Unicode()).tag(sync=True)  # the recorded sentences
    _field = traitlets.Dict({"missing": "", "most": _MOST, "longest": _LONGEST}).tag(sync=True)
    _measures = traitlets.Dict(_MEASURES).tag(sync=True)
    _typed = traitlets.Dict({"text": "", "recorded": False, "number": 0}).tag(sync=True)  # what was sent, counted
    _said = traitlets.Dict({"text": "", "number": 0}).tag(sync=True)  # what there is to say, and to which
    _ramp = ramp_trait()

    def __init__(
        self,
        text: str = real_sentences.SENTENCES[0],
        head: tuple[int, int] | None = None,
        model: real.Real | None = None,
        title: str = "where the heads of a real model look",
    ) -> None:
        self._model = model
        known = {} if model else {each.text: each for each in real_sentences.recorded()}
        self._reading = known.get(text) or self._read(text)
        levels = self._reading.levels
        chosen = _sharpest(levels) if head is None else as_head("head", head, levels.shape[:2])
        super().__init__(
            title=str(title),
            head=chosen,
            _offered=[*self.recorded()],
            _field={"missing": "" if model else real.missing(), "most": _MOST, "longest": _LONGEST},
        )
        self._show(self._reading)

    @staticmethod
    def recorded() -> tuple[str, ...]:
        """Return the sentences that were read before, and need no model."""
        return tuple(each.text for each in real_sentences.recorded())

    def look(self, text: str) -> None:
        """Show what the model makes of a sentence. Raises as the class does, and then changes nothing."""
        self._show(self._read(text))

    @property
    def tokens(self) -> list[str]:
        """The tokens of the sentence, as the model has them: most begin with a space."""
        return list(self._reading.tokens)

    @property
    def weights(self) -> np.ndarray:
        """The weights of every head, (layers, heads, T, T) float64, rounded to 1/255."""
        return self._reading.levels / LEVELS

    def shares(self) -> np.ndarray:
        """Return what heads are sorted by: the share of attention that `.measure` names, (layers, heads) float64."""
        levels = self._reading.levels.astype(float)
        T = len(self._reading.tokens)
        if self.measure == "pair":
            return levels[:, :, self.query, self.key] / LEVELS
        keys_of = (
            _places_after_repeats(self._reading.tokens)
            if self.measure == "again"
            else [[_key_of_measure(self.measure, i)] for i in range(T)]
        )
        rows = [i for i in range(1, T) if keys_of[i]]
        sums = sum((levels[:, :, i, keys_of[i]].sum(-1) for i in rows), np.zeros(levels.shape[:2]))
        return sums / (LEVELS * max(1, len(rows)))

    def ranked(self) -> list[tuple[tuple[int, int], float]]:
        """Return all heads with their share, the largest first: ((layer, head), share)."""
        shares = self.shares()
        order = np.argsort(-shares, axis=None, kind="stable")
        return [(divmod(int(place), shares.shape[1]), float(shares.flat[place])) for place in order]

    @traitlets.validate("head")
    def _head_exists(self, proposal):
        return as_head("head", proposal.value, self._reading.levels.shape[:2])

    @traitlets.validate("query", "key")
    def _token_exists(self, proposal):
        name = proposal.trait.name
        T = len(self._reading.tokens)
        if not 0 <= proposal.value < T:
            raise ValueError(f"{name} is {proposal.value} but there are {T} tokens: 0 to {T - 1}")
        if name == "key" and proposal.value > self.query:
            raise ValueError(
                f"key is {proposal.value} and query {self.query}: a token looks at itself and earlier ones"
            )
        return proposal.value

    @traitlets.observe("query")
    def _keep_key_earlier(self, change):
        if self.key > self.query:
            self.key = self._strongest()

    @traitlets.observe("_typed")
    def _read_typed(self, change):
        text = change.new["text"]
        message = ""
        try:
            with hide_prints():
                known = {each.text: each for each in real_sentences.recorded()}
                self._show(known[text] if change.new["recorded"] else self._read(text))
        except Exception as error:  # anyone's model
            message = " ".join(str(error).split()) or type(error).__name__
        self._said = {"text": message[:_PROBLEM], "number": change.new["number"]}

    def _read(self, text):
        text = text.strip()
        if not text:
            raise ValueError("Type a sentence first.")
        if len(text) > _LONGEST:
            raise ValueError(f"That is {len(text)} letters long: at most {_LONGEST} fit, and at most {_MOST} tokens.")
        model, name = (self._model, "") if self._model else real_sentences.here()
        T = len(model.encode(text)[0])
        if T == 1:
            raise ValueError("That is one token, which can only look at itself: type two or more.")
        if T > _MOST:
            raise ValueError(f"That is {T} tokens long: at most {_MOST} fit here. Leave some words out.")
        return real_sentences.read(model, text, name)

    def _show(self, reading):
        """Show another sentence, from the token that it is about or from its last one."""
        shape = reading.levels.shape[:2]
        with self.hold_sync():
            self._reading = reading
            self._labels = _labels(reading.tokens)
            if not (self.head[0] < shape[0] and self.head[1] < shape[1]):
                self.head = _sharpest(reading.levels)
            self.key, self.query = 0, reading.asked
            self.key = self._strongest()
            self._shown = _page_state(reading)

    def _strongest(self):
        return int(self._reading.levels[(*self.head, self.query)].argmax())

    def alone_state(self) -> dict[str, Any]:
        room = _ALONE - len(self._reading.triangles)
        others = []
        for each in real_sentences.recorded():
            size = 0 if each.text == self._reading.text else len(each.triangles)
            if size <= room:
                room -= size
                others.append(each)
        texts = [each.text for each in others]
        if self._reading.text not in texts:
            texts = [self._reading.text, *texts]
            others = [self._reading, *others]
        at = texts.index(self._reading.text)
        sentences = [
            None if i == at else _page_state(each) for i, each in enumerate(others)
        ]  # what is shown is sent anyway
        return {"_offered": texts, "_alone": {"sentences": sentences, "at": at}}

    # ---- in words and as a picture

    def as_text(self) -> str:
        reading = self._reading
        labels = self._labels
        layers, heads = reading.levels.shape[:2]
        keys = self.weights[(*self.head, self.query)]
        most = [key for key in np.argsort(-keys, kind="stable")[:_LISTED].tolist() if keys[key] >= 0.005]
        next_ones = ", ".join(
            f"“{_label(text)}” {short(chance / 1000)}" for text, chance in reading.following[self.query]
        )
        return "\n".join(
            [
                f"{self.title}: “{reading.text}”",
                f"{len(labels)} tokens, {layers} layers of {heads} heads, {reading.source}",
                "",
                f"{head_name(*self.head)}, from {self._name_token(self.query)} to",
                *(f"  {self._name_token(key)}  {short(keys[key])}" for key in most),
                "",
                f"share of attention {self._describe_measure()}, the first {_LISTED} of {layers * heads} heads",
                *(f"  {head_name(*head)}  {short(share)}" for head, share in self.ranked()[:_LISTED]),
                "",
                f"after {self._name_token(self.query)} the model expects: {next_ones}",
                "Weights are rounded to 1/255.",
            ]
        )

    def alt(self) -> str:
        keys = self.weights[(*self.head, self.query)]
        key = int(keys.argmax())
        (best, share), *_ = self.ranked()
        return (
            f"The sentence “{self._reading.text}” with arrows from {self._name_token(self.query)} to the tokens that "
            f"{head_name(*self.head)} looks at, most to {self._name_token(key)}, {short(keys[key])}. Below, all "
            f"weights of this head, a map of all heads by the share of attention {self._describe_measure()}, and the "
            f"first heads of that order: {head_name(*best)} leads with {short(share)}."
        )

    def figure(self) -> Figure:
        return draw(
            self._reading,
            self._labels,
            (self.head, self.query, self.key),
            f"share {self._describe_measure()}",
            self.shares(),
            self.ranked(),
            [(_label(text), chance) for text, chance in self._reading.following[self.query]],
        )

    def _name_token(self, place):
        return f"{place} “{self._labels[place]}”"

    def _describe_measure(self):
        if self.measure == "pair":
            return f"from {self._name_token(self.query)} to {self._name_token(self.key)}"
        return _MEASURES[self.measure]


def _key_of_measure(measure, i):
    """The key that a measure asks of query i."""
    return {"before": i - 1, "first": 0, "itself": i}[measure]


def _places_after_repeats(tokens):
    """For each token the places right after earlier ones that are the same, but for the space before them."""
    words = [token.strip() or token for token in tokens]
    return [[j + 1 for j in range(i) if words[j] == words[i]] for i in range(len(words))]


def _sharpest(levels):
    """The head in which the last token looks most at one other than itself and the first."""
    some = levels[:, :, -1, 1:-1] if levels.shape[-1] > 2 else levels[:, :, -1, :1]
    return divmod(int(some.max(-1).argmax()), levels.shape[1])


def _label(token):
    """A token for people: without the space before it, and with … where it goes on with a word."""
    inside = not token.startswith(" ") and token[:1].isalnum()
    return f"…{token}" if inside else as_labels("tokens", [token.removeprefix(" ") or token])[0]


def _labels(tokens):
    first = as_labels("tokens", tokens[:1])
    return [first[0].strip(), *(_label(token) for token in tokens[1:])]


def _page_state(reading):
    """A reading as a page has it."""
    layers, heads = reading.levels.shape[:2]
    return {
        "text": reading.text,
        "tokens": _labels(reading.tokens),
        "query": reading.asked,
        "layers": layers,
        "heads": heads,
        "levels": reading.triangles,
        "again": _places_after_repeats(reading.tokens),
        "following": [[[_label(text), chance] for text, chance in some] for some in reading.following],
        "source": reading.source,
    }
