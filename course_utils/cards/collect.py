"""Gather the cards of all days from the course's lessons, quizzes and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course_utils import loader
from course_utils.checks.judge.exercise_tables import all_exercises
from course_utils.course import DAYS, LESSONS, ROOT

from . import lessons
from .card import KINDS, Card, NoCards, literal


def all_cards(root: Path = ROOT) -> list[Card]:
    """Return the cards of every day that has a lesson in `root`, in the order of days and kinds.

    Raises:
        NoCards: no lesson is found, a claim has no reason or several, a card names a mistake that its exercise no
            longer knows, or two cards have the same id.
    """
    page = root / LESSONS / "symbols.ipynb"
    symbols = lessons.markdown_of(page) if page.exists() else ""
    notebooks = [(day.number, path) for day in DAYS if (path := day.notebook(LESSONS, root))]
    cards = [card for day, path in notebooks for card in _cards_of(day, path, symbols)]
    if not cards:
        raise NoCards(f"{root}: has no lessons in {LESSONS}/; run it in the course's folder")
    for name, times in Counter(card.id for card in cards).items():
        if times > 1:
            raise NoCards(f"{times} cards are called {name}; begin one of them with other words")
    return cards


def _cards_of(day: int, lesson: Path, symbols: str) -> list[Card]:
    """Return the cards of a day; `symbols` is the text of the page with the symbols of all days."""
    text = lessons.markdown_of(lesson)
    cards = [
        *(_symbol(day, *row) for row in lessons.symbols(text + lessons.of_day(symbols, day))),
        *(_quiz(day, question) for question in loader.quiz(day)),
        *_mistakes(day),
        *(_claim(day, claim) for claim in lessons.claims(text)),
    ]
    return sorted(cards, key=lambda card: KINDS.index(card.kind))


def _symbol(day: int, symbol: str, spoken: str, python: str) -> Card:
    question = "What does this stand for, and what is it in Python?" if python else "What does this stand for?"
    return Card(
        day, "symbol", symbol, f"{symbol}\n\n{question}", f"{spoken}\n\nIn Python: {python}" if python else spoken
    )


def _quiz(day: int, question: Mapping[str, Any]) -> Card:
    """Return a card whose answer says which choice is right, why, and why the others are not."""
    choices: Sequence[Mapping[str, Any]] = question["choices"]
    right = [choice for choice in choices if choice.get("right")]
    wrong = [choice for choice in choices if not choice.get("right")]
    offered = "\n".join(f"{number}. {literal(choice['text'])}" for number, choice in enumerate(choices, start=1))
    answers = "\n\n".join(f"**{literal(choice['text'])}**\n\n{literal(choice['why'])}" for choice in right)
    others = "\n".join(f"- *{literal(choice['text'])}*  \n  {literal(choice['why'])}" for choice in wrong)
    front = f"{literal(question['question'])}\n\n{offered}"
    return Card(day, "quiz", question["id"], front, f"{answers}\n\nWhy not the others:\n\n{others}")


def _mistakes(day: int) -> Iterator[Card]:
    """Yield a card for each mistake in a day's cards.yaml: what somebody does, and what the exercise's check says."""
    exercises = all_exercises(day)
    for entry in loader.cards(day)["mistakes"]:
        known = exercises[entry["exercise"]].mistakes if entry["exercise"] in exercises else ()
        message = next((mistake.message for mistake in known if mistake.name == entry["mistake"]), None)
        if message is None:
            where = f"fix it in answers/day{day}/cards.yaml"
            raise NoCards(f"day {day} knows no mistake {entry['mistake']!r} of {entry['exercise']}; {where}")
        yield Card(day, "mistake", entry["id"], f"{entry['done']}\n\nWhat is wrong?", literal(message))


def _claim(day: int, claim: str) -> Card:
    reasons = [each for each in loader.cards(day)["claims"] if claim.startswith(each["claim"])]
    if len(reasons) != 1:
        what = f"{len(reasons) or 'no'} reason{'s' * (len(reasons) > 1)}"
        raise NoCards(f"day {day}: answers/day{day}/cards.yaml has {what} for the claim {claim[:60]!r}; give it one")
    return Card(day, "defend", reasons[0]["id"], f"{claim}\n\nWhy? Say the reason aloud.", reasons[0]["reason"])
