"""What stands under a check that passed."""

import pytest

from course_utils.progress import exercises_of
from course_utils.views.passed import describe_passed

DAY = exercises_of(1)
IDS = [exercise.id for exercise in DAY]


def test_it_says_what_passed_how_far_one_is_and_what_comes_next():
    text = describe_passed(1, IDS[1], set(IDS[:2]))["text/plain"]
    assert text.startswith(f"✓ Passed: {DAY[1].title}.")
    assert f"2 of {len(DAY)} exercises, {DAY[0].points + DAY[1].points} of " in text
    assert text.endswith(f"Next: 3. {DAY[2].title} ({DAY[2].minutes} minutes).")


def test_the_next_is_the_first_after_it_that_has_not_passed_and_then_from_the_top():
    assert f"Next: 5. {DAY[4].title}" in describe_passed(1, IDS[1], {IDS[1], IDS[2], IDS[3]})["text/plain"]
    assert f"Next: 1. {DAY[0].title}" in describe_passed(1, IDS[-1], {IDS[-1]})["text/plain"]


def test_after_the_last_one_it_says_how_to_have_it_graded():
    bundle = describe_passed(1, IDS[0], set(IDS))
    assert "Next" not in bundle["text/plain"] and "grade it" in bundle["text/plain"] and "<a" not in bundle["text/html"]


def test_the_link_is_jupyterlabs_name_of_the_heading():
    assert 'href="#2.-' in describe_passed(1, IDS[0], {IDS[0]})["text/html"]
    assert 'href="#5.-Let-arrived-find-parcel"' in describe_passed(1, IDS[3], {IDS[3]})["text/html"]
    assert " " not in describe_passed(1, IDS[0], {IDS[0]})["text/html"].partition('href="')[2].partition('"')[0]


def test_an_exercise_that_the_day_does_not_have_is_refused():
    with pytest.raises(KeyError):
        describe_passed(1, "nothing", set())
