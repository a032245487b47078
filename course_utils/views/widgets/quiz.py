"""Questions with an explanation for every answer, right or wrong."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import traitlets

from course_utils import loader
from course_utils.views.drawing import typeset
from course_utils.views.picture import new_figure
from course_utils.views.shared.base import CourseWidget, InGallery, script, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Quiz(CourseWidget):
    """Multiple choice, one choice a question; each choice says why it is right or wrong.

    questions: list of {"question": str, "choices": [{"text": str, "right": bool, "why": str}, …]}; a choice without
    "right" is wrong. Text between backticks is set as code. `.answers` holds the chosen position per question, or None;
    it can be set. `.score` counts the right ones.
    Raises ValueError when a question has fewer than two choices, no right one, or a choice without text or why.
    """

    in_gallery = InGallery(
        6, "Questions from memory", summary="Answer the questions of a day; each choice says why it is right or wrong."
    )
    plays = False
    minutes = 8

    _esm = script("quiz.js")
    _css = style("quiz.css")

    answers: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _questions: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _scores: traitlets.List[Any] = traitlets.List().tag(sync=True)

    def __init__(self, questions):
        questions = _verify_questions(questions)
        total = len(questions)
        super().__init__(
            _questions=questions,
            _scores=[_describe_score(right, total) for right in range(total + 1)],
            answers=[None] * total,
        )

    @classmethod
    def of_day(cls, day: int, sitting: int | None = None) -> Quiz:
        """Return the quiz of a day, or of one of its sittings. Raises ValueError if there are no such questions."""
        return cls([question for question in loader.quiz(day) if sitting in (None, question.get("sitting"))])

    @property
    def score(self) -> int:
        """How many of the chosen answers are right."""
        pairs = zip(self._questions, self.answers, strict=True)
        return sum(question["choices"][chosen]["right"] for question, chosen in pairs if chosen is not None)

    @traitlets.validate("answers")
    def _answers_exist(self, proposal):
        answers = list(proposal.value)
        if len(answers) != len(self._questions):
            raise ValueError(f"there are {len(answers)} answers to {len(self._questions)} questions: one each, or None")
        for number, (question, chosen) in enumerate(zip(self._questions, answers, strict=True), 1):
            count = len(question["choices"])
            if chosen is not None and chosen not in range(count):
                raise ValueError(f"answer {number} is {chosen!r}: give a position from 0 to {count - 1}, or None")
        return answers

    def as_text(self) -> str:
        lines = []
        for number, question in enumerate(self._questions, 1):
            lines.append(f"{number}. {question['question']}")
            lines += [f"   {_letter(i)}) {choice['text']}" for i, choice in enumerate(question["choices"])]
        return "\n".join(lines)

    def alt(self) -> str:
        return f"Quiz, {len(self._questions)} questions. {self.as_text()}".replace("\n", " ")

    def figure(self) -> Figure:
        lines = []
        for number, question in enumerate(self._questions, 1):
            question_lines = textwrap.wrap(f"{number}. {question['question']}", 88, subsequent_indent="    ")
            lines += [(line, "bold") for line in question_lines]
            for i, choice in enumerate(question["choices"]):
                text = textwrap.wrap(
                    f"{_letter(i)}) {choice['text']}", 88, initial_indent="    ", subsequent_indent="        "
                )
                lines += [(line, "normal") for line in text]
            lines.append(("", "normal"))
        step = 20
        height = step * len(lines) + 8
        fig = new_figure(720, height)
        for place, (line, weight) in enumerate(lines):
            y = 1 - (step * place + 18) / height
            line = line.replace("`", "")
            fig.text(16 / 720, y, typeset(line), fontweight=weight)
        return fig


def _verify_questions(questions):
    if isinstance(questions, (str, dict)) or not list(questions):
        raise ValueError('questions is empty or not a list: give a list of {"question": …, "choices": […]}')
    return [_checked_question(number, question) for number, question in enumerate(questions, 1)]


def _checked_question(number, question):
    where = f"question {number}"
    text = _checked_text(question, "question", where)
    choices = question.get("choices")
    if not isinstance(choices, (list, tuple)) or len(choices) < 2:
        raise ValueError(f"{where} has fewer than two choices")
    checked = []
    for i, choice in enumerate(choices):
        place = f"{where}, choice {_letter(i)}"
        checked.append({"text": _checked_text(choice, "text", place), "why": _checked_text(choice, "why", place)})
        if not isinstance(right := choice.get("right", False), bool):
            raise ValueError(f'{place}: "right" has to be True or False')
        checked[-1]["right"] = right
        checked[-1]["verdict"] = "Right." if right else "Not so."
    if not any(choice["right"] for choice in checked):
        raise ValueError(f"{where} has no right choice")
    return {"number": f"{number}", "question": text, "choices": checked}


def _checked_text(holder, key, where):
    value = holder.get(key) if isinstance(holder, dict) else None
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f'{where} has no "{key}"')
    return value.strip()


def _letter(position):
    return chr(ord("a") + position)


def _describe_score(right, total):
    if right == total:
        return f"{right} of {total} right: all of them."
    return f"{right} of {total} right. Choose again wherever you like: each answer says why."
