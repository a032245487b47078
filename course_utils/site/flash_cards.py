"""The cards of the Anki deck on a page, where one turns them: the place for them, and a script for each day."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence

from course_utils.cards import Card
from course_utils.cards.text import as_html
from course_utils.course import DAYS
from course_utils.site.mathml import formula

KINDS = {  # in the order in which the page shows a day's cards
    "defend": "a claim to defend",
    "mistake": "a known mistake",
    "quiz": "a question",
    "symbol": "a symbol",
}
_CARDS = """<div class="course-flash" id="course-flash" hidden>
<div class="course-flash-bar"><select aria-label="Cards of">{days}</select><span role="status"></span>
<button type="button">← previous</button><button type="button">next →</button></div>
<div class="course-flash-card" tabindex="0" role="group" aria-label="Card: Enter turns it, arrow keys change it">
<div class="course-flash-side"></div><div class="course-flash-side" inert></div></div>
</div>
<noscript><p>To turn cards here takes JavaScript. The files below hold the same cards.</p></noscript>
<script src="_static/cards.js"></script>"""


def cards_html(days: Iterable[int | None]) -> str:
    """Return the HTML of the place where cards are turned, on a page at the top of the site.

    Args:
        days: the days that the site has; None for a page of no day.
    """
    there = set(days)
    listed = [(day.number, f"Day {day.number}: {day.title}") for day in DAYS if day.number in there]
    options = [f'<option value="{number}">{html.escape(title)}</option>' for number, title in listed]
    return _CARDS.format(days="".join([*options, '<option value="">All days</option>']))


def scripts(cards: Sequence[Card]) -> dict[str, str]:
    """Return a script for each day, by its path in the static folder: the kind, front and back of its cards."""
    decks: dict[int, list[tuple[str, str, str]]] = {}
    for card in sorted(cards, key=lambda card: [*KINDS].index(card.kind)):
        sides = KINDS[card.kind], as_html(card.front, formula), as_html(card.back, formula)
        decks.setdefault(card.day, []).append(sides)
    return {
        f"cards/day{day}.js": f"course.deck({day}, {json.dumps(deck, ensure_ascii=False)});\n"
        for day, deck in decks.items()
    }
