"""Day 7's drawings of its first half: what they show is what they are given, and their alt texts say it."""

import pytest
from drawing_rules import is_whole

from course_utils.costs.fragmentation import Request, serve
from course_utils.days.day7 import figures
from course_utils.serving.simulate import simulate
from course_utils.serving.traffic import THREE
from course_utils.views.picture import picture

TRACE = serve([Request(2, 3), Request(3, 5), Request(4, 2)], 12, "exact")
LOGS = {
    name: simulate(THREE, lambda tokens, context: 1.0, 2, static=name == "static", prefilled=True)
    for name in ("static", "continuous")
}
RATES = {"chat": (0.683, 0.0), "unrelated": (0.0, 0.0)}
FIGURES = {
    "step": lambda: figures.shared_step([1, 64], [0.010, 0.014], [102.2, 3024.1]),
    "slots": lambda: figures.slots_in_use(LOGS),
    "occupancy": lambda: figures.occupancy({"exact": TRACE, "again": TRACE}),
    "hits": lambda: figures.hit_rates(RATES, ["as they are", "with the time"]),
}


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off(name):
    assert is_whole(FIGURES[name]())


@pytest.mark.parametrize(
    ("name", "alt", "caption"),
    [
        ("step", "1: 10 ms and 102, 64: 14 ms and 3,024.", "64 texts together wait 1.4 times as long"),
        ("slots", "static: 62% of the slots over 8 steps", "in 62% of the slots (static) and 100% of the slots (con"),
        ("occupancy", "2 panels", f"{len(TRACE.steps)} with exact and {len(TRACE.steps)} with again"),
        ("hits", "chat 68.3% and 0.0%", "“chat”: 68% (as they are) and 0% (with the time)"),
    ],
)
def test_a_figure_says_in_words_what_it_shows(name, alt, caption):
    fig = FIGURES[name]()
    assert alt in picture(fig).alt and caption in fig.get_gid()


def test_a_step_and_its_tokens_per_second_are_bars():
    left, right = FIGURES["step"]().axes
    assert [bar.get_height() for bar in left.patches] == pytest.approx([10, 14])
    assert [bar.get_height() for bar in right.patches] == [102.2, 3024.1]


def test_slots_with_work_are_those_of_the_log():
    for ax, log in zip(FIGURES["slots"]().axes, LOGS.values(), strict=True):
        (every, used) = ax.collections
        assert max(y for _, y in every.get_paths()[0].vertices) == 2
        drawn = {round(float(y)) for _, y in used.get_paths()[0].vertices}
        assert drawn - {0} == {len(step.parts) for step in log.steps}


def test_what_holds_tokens_lies_under_what_is_reserved_and_empty():
    filled, empty = figures.occupancy({"exact": TRACE, "again": TRACE}).axes[0].collections
    assert (filled.get_label(), empty.get_label()) == ("hold a token", "reserved, empty")
    tops = {}
    for name, area in (("filled", filled), ("empty", empty)):
        heights = {}
        for step, share in area.get_paths()[0].vertices:
            heights.setdefault(int(step), set()).add(round(float(share), 9))
        tops[name] = heights
    for number, step in enumerate(TRACE.steps):
        filled_share = round(step.filled / 12, 9)
        reserved_share = round(step.reserved / 12, 9)
        assert {0.0, filled_share} <= tops["filled"][number]
        assert {filled_share, reserved_share} <= tops["empty"][number]


def test_panels_share_the_length_of_the_longest_run():
    short = serve([Request(2, 3)], 12, "exact")
    first, second = figures.occupancy({"long": TRACE, "short": short}).axes
    assert first.get_xlim() == second.get_xlim() == (0, len(TRACE.steps))


def test_hits_stand_side_by_side():
    (ax,) = FIGURES["hits"]().axes
    assert [round(bar.get_height(), 6) for bar in ax.patches] == [68.3, 0, 0, 0]


def test_what_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="2 places and 1 values"):
        figures.shared_step([1, 2], [0.1], [10.0, 20.0])
    with pytest.raises(ValueError, match="2 places and 1 values"):
        figures.shared_step([1, 2], [0.1, 0.2], [10.0])
    with pytest.raises(ValueError, match="kinds is empty"):
        figures.hit_rates({}, ["one", "two"])
