"""The rule that counts a lesson's minutes: prose, shown code, work, and what counts half."""

import pytest

from course_utils.authoring.reading_time import sittings, stretches

PROSE = "word " * 90  # a minute
CODE = "```{code-cell} ipython3\n" + "x = 1\n\n" * 7 + "```\n"  # a minute
HEADER = "---\njupyter:\n  source_hidden: true\n---\n"
FOLDED = CODE.replace("ipython3\n", f"ipython3\n{HEADER}")


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (PROSE, 1),
        (CODE, 1),
        (CODE.replace("ipython3\n", "ipython3\n:tags: [remove-input]\n\n"), 1),
        (FOLDED, 0),
        ("```{code-cell} ipython3\n" + HEADER + "guesses.a_loss()\n```\n", 1.5),
        ("```{code-cell} ipython3\n" + HEADER + "Quiz.of_day(3)\n```\n", 8),
        ("```{code-cell} ipython3\n" + HEADER + "Quiz.of_day(3, sitting=1)\n```\n", 4),
        ("```{code-cell} ipython3\n" + HEADER + "views.MaskPainter()\n```\n", 3),
        (f"---\njupytext: {PROSE}\n---\n", 0),
        (f"{PROSE}\n## References\n{PROSE}", 1),
        (f"<details><summary></summary>\n\n{PROSE}\n\n</details>\n\n{PROSE}", 1.5),
        (f"{PROSE}\n## Appendix\n\n{PROSE}\n\n{CODE}\n## Next\n\n{PROSE}", 3),
        (f"{PROSE}\n## Appendix\n\n<details>\n{PROSE}\n</details>\n", 1.5),
    ],
)
def test_the_minutes_of_a_text(text, counted):
    assert sum(stretches(text)) == pytest.approx(counted, abs=0.04)


def test_a_problem_by_pencil_counts_once_although_the_stop_after_it_speaks_of_it():
    text = "**Time**: an hour,\nwith problems by pencil.\n\n### Two heads by pencil\n\n"
    (whole,) = stretches(text)
    before, after = stretches(f"{text}**A place to stop.** You have two heads\nby pencil.\n\nBy pencil: one more.\n")
    assert whole == before == pytest.approx(4, abs=0.2) and after == pytest.approx(4, abs=0.2)


def test_a_lesson_has_one_sitting_or_those_that_it_announces():
    assert sittings(PROSE) == [pytest.approx(1)]
    text = f"{PROSE}\n\n## First sitting: What?\n\n{PROSE}\n\n## Second sitting: Why?\n\n{PROSE}\n\n## Next\n\n{PROSE}"
    assert sittings(text) == [pytest.approx(2, abs=0.1), pytest.approx(2, abs=0.1)]
