"""The timeline of a scheduler and the table of pages without a browser: what they refuse, say, count and draw."""

import sys

import jupytext
import pytest
from as_page import on_page, send

from course_utils.answers.day7.exercises import Scheduler
from course_utils.course import ROOT, SOLUTIONS, SOURCES
from course_utils.serving.traffic import THREE, Request
from course_utils.views import PageTable, ServingTimeline
from course_utils.views.static_page import page_state
from course_utils.views.widgets.timeline_run import MAX_STEPS, SETS

PAIR = [("a", 0, 3, 2), ("b", 0, 3, 2)]


def is_whole(fig):
    """Whether every text and box lies within a figure whose axes fill it."""
    fig.canvas.draw()
    width, height = fig.get_size_inches() * fig.dpi
    boxes = [part.get_window_extent() for part in (*fig.axes[0].texts, *fig.axes[0].patches)]
    return all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes)


def signs(widget):
    """What each request did, a letter a step."""
    letters = {"": " ", "prefill": "P", "decode": "D", "wait": ".", "preempted": "!", "finished": "_", "refused": "x"}
    steps = on_page(widget).walk["steps"]
    return {
        request["name"]: "".join(letters[step["cells"][row][0]] for step in steps)
        for row, request in enumerate(on_page(widget).walk["requests"])
    }


class Mine(Scheduler):
    """A scheduler of the exercise."""


class Planned:
    """Gives one step after the other of those that are written in it, whatever was added."""

    steps: tuple = ()

    def __init__(self, n_blocks, block_size, budget):
        self.left = [*self.steps]

    def add(self, name, prompt, new):
        pass

    def step(self):
        print("a word")
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def planning(*steps):
    return type("Mine", (Planned,), {"steps": steps})


class Swaps(Planned):
    """Computes a token of one and takes it from the other, for ever."""

    turn = 0

    def step(self):
        self.turn += 1
        names = ["a", "b"] if self.turn % 2 else ["b", "a"]
        return {names[0]: 1}, names[1:]


class Hangs(Planned):
    def step(self):
        while True:
            pass


class Refuses(Planned):
    def add(self, name, prompt, new):
        raise ValueError("no room")


class Unwritten:
    def __init__(self, n_blocks, block_size, budget):
        raise NotImplementedError


class Nothing:
    def __init__(self, n_blocks, block_size, budget):
        pass

    def add(self, name, prompt, new):
        pass


class TestTheLibrary:
    def test_three_requests_take_5_steps_and_in_static_batches_8(self):
        widget = ServingTimeline()
        assert tuple(on_page(widget).walk["requests"]) == tuple({**each._asdict(), "arrival": 0} for each in THREE)
        assert (widget.last, signs(widget)) == (5, {"A": "PD___", "B": "PDDDD", "C": ".PDD_"})
        widget.rule = "static"
        assert (widget.last, signs(widget)) == (8, {"A": "PD______", "B": "PDDDD___", "C": ".....PDD"})

    def test_it_says_all_steps_in_a_table(self):
        assert ServingTimeline().as_text().splitlines() == [
            "continuous, three at once: budget 4 tokens a step, 5 blocks of 2 tokens",
            "step    1  2  3  4  5",
            "tokens  4  4  2  2  1",
            "blocks  2  5  4  5  3",
            "A      P2  D",
            "B      P2  D  D  D  D",
            "C       . P2  D  D",
            "P prefill and its tokens, D decode, . waits, ! preempted, x refused",
            "5 steps, 65% of the budget and 76% of the blocks used. "
            "Steps to the first token: A 1, B 1, C 2, mean 1.33.",
        ]

    def test_each_cell_says_what_was_done_and_why(self):
        widget = ServingTimeline()
        assert [widget.describe(step, 2) for step in range(5)] == [
            "Step 1: C waits: the budget of 4 tokens is used.",
            "Step 2: C computes 2 tokens, prefill: tokens 1 to 2 of 2. It gets token 1 of 3.",
            "Step 3: C computes 1 token, decode: decodes go first. It gets token 2 of 3.",
            "Step 4: C computes 1 token, decode: decodes go first. It gets token 3 of 3. It is finished.",
            "Step 5: C is finished.",
        ]
        send(widget, arrivals="too few blocks", blocks=6)
        assert widget.describe(0, 2) == "Step 1: C is not there yet. It arrives before step 2."
        assert widget.describe(3, 2) == "Step 4: C is preempted: A needs a block, none is free, and it arrived last."
        assert widget.describe(6, 2) == "Step 7: C waits: B is before it."
        widget.blocks = 3
        assert widget.describe(0, 0) == "Step 1: A is refused: it will need 4 blocks, and there are only 3."
        assert signs(widget) == {"A": "xxxxxx", "B": "xxxxxx", "C": " PDDDD"}

    def test_a_long_prompt_is_cut_and_decodes_go_on_beside_it(self):
        widget = ServingTimeline()
        send(widget, arrivals="a long prompt", blocks=16)
        assert signs(widget) == {"A": "PDDDDDDD__", "B": "PDDDDD____", "C": "  PPPPPPDD"}
        widget.budget = 16
        assert signs(widget)["C"] == "  PDD___"

    def test_the_measures_are_those_of_the_steps_shown(self):
        widget = ServingTimeline()
        nothing = {"A": None, "B": None, "C": None}
        assert widget.measures == {"steps": 0, "budget": None, "blocks": None, "first": nothing, "mean": None}
        widget.step = 1
        first = {"A": 1, "B": 1, "C": None}
        assert widget.measures == {"steps": 1, "budget": 1.0, "blocks": 0.4, "first": first, "mean": 1.0}
        widget.step = widget.last
        assert widget.measures["budget"] == 13 / 20 and widget.measures["first"]["C"] == 2
        send(widget, arrivals="a long prompt", blocks=16)
        widget.step = widget.last
        assert widget.measures["first"] == {"A": 1, "B": 1, "C": 6}, "counted from its arrival, before step 3"

    def test_no_step_uses_more_than_there_is(self):
        for name, chosen in SETS.items():
            widget = ServingTimeline(budget=chosen.budget, blocks=chosen.blocks)
            for widget.rule in ("continuous", "static"):
                widget.arrivals = name
                steps = on_page(widget).walk["steps"]
                assert all(step["used"] <= chosen.budget and step["held"] <= chosen.blocks for step in steps)
                assert not widget.problem and "x" not in "".join(signs(widget).values())
                got = [sum(step["cells"][row][2] for step in steps) for row in range(len(chosen.requests))]
                assert got == [request.new for request in chosen.requests]

    def test_what_is_set_begins_anew(self):
        widget = ServingTimeline()
        widget.step = 5
        send(widget, step=0, arrivals="one after another", budget=2, blocks=8)
        assert (widget.step, on_page(widget).walk["settings"]["budget"]) == (0, 2)
        widget.step = widget.last
        widget.rule = "static"
        assert widget.step == 0 and "8 blocks" in widget.as_text()

    def test_requests_of_ones_own_come_first_and_by_arrival(self):
        widget = ServingTimeline(requests=[("late", 2.5, 1, 1), Request("soon", 0.0, 2, 2)], budget=3, block_size=4)
        assert signs(widget) == {"soon": "PD__", "late": "   P"} and [*signs(widget)] == ["soon", "late"]
        assert widget.measures["first"] == {"soon": None, "late": None} and widget.arrivals == "as given"
        assert on_page(widget).layout["sets"]["as given"] == {"budget": 3, "blocks": 32}


class TestSomebodysScheduler:
    def test_it_schedules_and_the_library_can_be_chosen_beside_it(self):
        widget = ServingTimeline(Mine)
        assert on_page(widget).layout["rules"][0] == ["yours", "Mine"] and widget.as_text().startswith("Mine, three")
        assert (widget.rule, signs(widget)) == ("yours", {"A": "PD___", "B": "PDDDD", "C": ".PDD_"})
        assert widget.describe(0, 2) == "Step 1: C waits: it is not in the plan."
        assert (
            widget.describe(1, 2) == "Step 2: C computes 2 tokens, prefill: tokens 1 to 2 of 2. It gets token 1 of 3."
        )
        widget.rule = "static"
        assert widget.last == 8

    def test_the_exercise_hands_it_the_class_that_a_learner_wrote(self):
        cells = [cell.source for cell in jupytext.read(ROOT / SOURCES[SOLUTIONS] / "day7_serving.md").cells]
        names: dict[str, object] = {}
        for begins, called in (("class Scheduler", ""), ("from course_utils.views import ServingTimeline", "shown = ")):
            (cell,) = [each for each in cells if each.startswith(begins)]
            exec(cell.replace("\nServingTimeline(", f"\n{called}ServingTimeline("), names)
        widget = names["shown"]
        assert widget.as_text().startswith("Scheduler, as given") and not widget.problem and "!" in signs(widget)["b"]

    def test_blocks_are_counted_from_what_is_computed_and_who_never_fits_is_refused(self):
        widget = ServingTimeline(Mine)
        send(widget, arrivals="too few blocks", blocks=6)
        assert not widget.problem and "!" in signs(widget)["C"] and "after preemption" not in widget.as_text()
        assert max(step["held"] for step in on_page(widget).walk["steps"]) == 6
        assert "is preempted: the scheduler says so." in widget.describe(signs(widget)["C"].index("!"), 2)
        widget.blocks = 3
        assert not widget.problem and signs(widget)["A"][0] == "x"

    @pytest.mark.parametrize(
        ("scheduler", "message", "steps"),
        [
            (Unwritten, "Unwritten is not written yet.", 0),
            (Nothing, "Nothing.step raised AttributeError: 'Nothing' object has no attribute 'step', in step 1.", 0),
            (Refuses, "Refuses.add raised ValueError: no room, in step 1.", 0),
            (Hangs, "Hangs.step does not come to an end, in step 1.", 0),
            (Swaps, f"After {MAX_STEPS} steps a is not finished.", MAX_STEPS),
            (planning(({}, [])), "In step 1 nothing is planned, though a is not finished.", 1),
            (planning(({"a": 2}, []), None), "Mine.step returned None: a pair (plan, preempted) was expected.", 1),
            (planning(([], [])), "Mine.step returned ([], []): a pair (plan, preempted) was expected.", 0),
            (planning(({"a": 1}, "b")), "Mine.step returned ({'a': 1}, 'b'): preempted has to be a list.", 0),
            (planning(({"z": 1}, [])), "Step 1 names 'z', which is not there or is finished.", 0),
            (planning(({"a": 1}, [["b"]])), "Step 1 names ['b'], which is not there or is finished.", 0),
            (planning(({"a": 4}, [])), "Step 1 plans 4 tokens for a, of which 3 can be computed.", 0),
            (planning(({"a": 0.5}, [])), "Step 1 plans 0.5 tokens for a, of which 3 can be computed.", 0),
            (planning(({"a": 1}, ["a"])), "Step 1 plans a and preempts it, too.", 0),
            (planning(({"a": 3, "b": 2}, [])), "In step 1 5 tokens are planned, of a budget of 4.", 1),
            (planning(({"a": 2, "b": 2}, []), ({"a": 1, "b": 1}, [])), "In step 2 4 blocks are needed, of 3.", 2),
            (object, "object raised TypeError: object() takes no arguments.", 0),
        ],
    )
    def test_what_it_does_wrong_is_said_and_what_came_before_is_shown(self, scheduler, message, steps, capsys):
        widget = ServingTimeline(scheduler, PAIR, budget=4, blocks=3)
        assert (widget.problem, widget.last) == (message, steps)
        assert widget.as_text().splitlines()[-1] == message and widget.alt().endswith(message)
        assert is_whole(widget.figure()) and capsys.readouterr().out == ""
        widget.rule = "continuous"
        assert not widget.problem and widget.last

    def test_a_loop_that_is_ended_leaves_a_debugger_as_it_was(self):
        def tracer(*_):
            return None

        before = sys.gettrace()
        sys.settrace(tracer)
        try:
            ServingTimeline(Hangs)
            assert sys.gettrace() is tracer
        finally:
            sys.settrace(before)

    def test_an_object_in_place_of_a_class_is_refused(self):
        with pytest.raises(TypeError, match="give the class, an object of it is made for each run"):
            ServingTimeline(Mine(5, 2, 4))


class TestThePage:
    def test_its_state_is_small_even_after_the_most_steps(self):
        rows = [(name, 0, 2, 2) for name in "abcdefgh"]
        widget = ServingTimeline(Swaps, rows)
        assert widget.last == MAX_STEPS and len(str(page_state(widget))) < 150_000
        assert len(str(page_state(ServingTimeline()))) < 10_000

    @pytest.mark.parametrize("name", SETS)
    def test_the_picture_is_whole_and_has_a_box_for_each_thing_that_was_done(self, name):
        widget = ServingTimeline(blocks=16)
        widget.arrivals = name
        for step in (0, 1, widget.last):
            widget.step = step
            steps = on_page(widget).walk["steps"][: widget.step or widget.last]
            cells = [cell for step in steps for cell in step["cells"]]
            did = sum(cell[0] not in ("", "finished") for cell in cells) + sum(cell[2] for cell in cells)
            fig = widget.figure()
            assert is_whole(fig) and len(fig.axes[0].patches) == 4 * len(steps) + did

    def test_of_many_steps_the_picture_has_the_last(self):
        widget = ServingTimeline(requests=[(f"request {name}", 0, 20, 40) for name in "WXYZ"], budget=3, blocks=64)
        fig = widget.figure()
        assert is_whole(fig) and str(widget.last) in [text.get_text() for text in fig.axes[0].texts]
        assert "1" not in [text.get_text() for text in fig.axes[0].texts[:60] if text.get_color() == "#6B7280"]

    def test_alt_text_says_what_each_request_did_and_when(self):
        message = ServingTimeline().alt()
        assert "C: waits 1, prefill 2, decode 3–4, finished 5." in message and "three at once" in message
        widget = ServingTimeline(requests=[("a", 3, 1, 1)])
        assert "a: not there yet 1–3, prefill 4." in widget.alt()

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"budget": 0}, ValueError, "budget is 0: it must be at least 1"),
            ({"blocks": 65}, ValueError, "blocks is 65: give 1 to 64"),
            ({"block_size": 1.5}, TypeError, "block_size is 1.5: give a whole number"),
            ({"requests": []}, ValueError, "there are 0 requests: give 1 to 8"),
            ({"requests": PAIR * 5}, ValueError, "there are 10 requests"),
            ({"requests": PAIR * 2}, ValueError, "two requests have one name"),
            ({"requests": [("a", 0, 3)]}, ValueError, r"give \(name, arrival, prompt, new\)"),
            ({"requests": [(1, 0, 3, 2)]}, ValueError, "a request is named 1: give a text of 1 to 10 letters"),
            ({"requests": [("a", -1, 3, 2)]}, ValueError, "a arrives at -1: give a number of steps, 0 to 50"),
            ({"requests": [("a", 0, 0, 2)]}, ValueError, "prompt is 0"),
        ],
    )
    def test_what_cannot_be_shown_is_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            ServingTimeline(**arguments)

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("rule", "yours", "rule is 'yours': give one of 'continuous', 'static'"),
            ("arrivals", "none", "arrivals is 'none': give one of 'three at once'"),
            ("budget", 0, "budget is 0"),
            ("step", 6, "step is 6: give a number from 0 to 5"),
        ],
    )
    def test_what_cannot_be_set_is_refused(self, name, value, message):
        with pytest.raises(ValueError, match=message):
            setattr(ServingTimeline(), name, value)


FORKED = [*(("append", "a"),) * 6, ("fork", "a", "b")]


class TestPageTable:
    def test_blocks_are_taken_when_they_are_needed(self):
        widget = PageTable(calls=[])
        assert (widget.tables, widget.references, widget.message) == ({}, [0] * 8, "Nothing is stored yet.")
        widget.calls = [("append", "a")] * 4
        assert widget.tables == {"a": [0]} and widget.message == "append a: token 3 goes to place 3 of block 0."
        widget.calls = [*widget.calls, ("append", "a"), ("append", "b")]
        assert widget.tables == {"a": [0, 1], "b": [2]} and widget.lengths == {"a": 5, "b": 1}
        assert widget.message == "append b: token 0 goes to place 0 of block 2, which was free."

    def test_a_fork_shares_and_the_first_who_writes_takes_a_copy(self):
        widget = PageTable(calls=FORKED)
        assert widget.tables["b"] == widget.tables["a"] == [0, 1] and widget.references[:3] == [2, 2, 0]
        assert widget.message == "fork a: b has the same table, so 2 blocks are shared. Nothing is copied."
        widget.calls = [*FORKED, ("append", "b")]
        assert widget.tables == {"a": [0, 1], "b": [0, 2]} and widget.references[:3] == [2, 1, 1]
        assert widget.message.endswith("place 2 of block 2, a copy of block 1, which others also hold: copy on write.")
        assert "block 2: b, tokens a4 a5 b6" in widget.as_text()
        widget.calls = [*widget.calls, ("append", "a")]
        assert widget.message == "append a: token 6 goes to place 2 of block 1.", "it has the block alone by now"

    def test_full_blocks_that_are_shared_stay_so(self):
        widget = PageTable(calls=[*(("append", "a"),) * 8, ("fork", "a", "b"), ("append", "b")])
        assert widget.tables == {"a": [0, 1], "b": [0, 1, 2]}

    def test_what_others_hold_stays_when_a_sequence_ends(self):
        widget = PageTable(calls=[*FORKED, ("append", "b"), ("free", "a")])
        assert widget.tables == {"b": [0, 2]} and widget.references[:3] == [1, 0, 1]
        assert widget.message == "free a: 1 block is free again. 1 block that others hold stays."

    def test_without_a_free_block_nothing_changes(self):
        widget = PageTable(2, 4, [*FORKED, ("append", "b")])
        assert widget.tables["b"] == [0, 1] and widget.lengths["b"] == 6
        assert widget.message == "append b: no block is free. Nothing changes."

    def test_it_says_blocks_tables_and_the_last_call(self):
        widget = PageTable(3, 4, FORKED)
        assert widget.as_text().splitlines() == [
            "blocks and tables: 2 of 3 blocks of 4 places in use, 4 without sharing",
            "block 0: a and b, tokens a0 a1 a2 a3",
            "block 1: a and b, tokens a4 a5",
            "block 2: free",
            "table of a: 0, 1 (6 tokens)",
            "table of b: 0, 1 (6 tokens)",
            widget.message,
        ]
        assert "Block 0 is held by a and b; block 1 is held by a and b. Tables: a: 0, 1; b: 0, 1." in widget.alt()
        assert "held" not in PageTable(calls=[]).alt()

    @pytest.mark.parametrize(("n_blocks", "block_size"), [(1, 1), (24, 8), (24, 1), (8, 4)])
    def test_the_picture_is_whole_and_has_every_slot(self, n_blocks, block_size):
        fig = PageTable(n_blocks, block_size, [("append", name) for name in "abcdef"]).figure()
        assert is_whole(fig) and len(fig.axes[0].patches) == n_blocks * block_size

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"n_blocks": 25}, ValueError, "n_blocks is 25: give 1 to 24"),
            ({"block_size": 0}, ValueError, "block_size is 0"),
            ({"n_blocks": 2.5}, TypeError, "give a whole number"),
            ({"calls": 3}, ValueError, "calls is 3: give a list of them"),
            ({"calls": [()]}, ValueError, "give .'append', name."),
            ({"calls": [("push", "a")]}, ValueError, "a call is .'push', 'a'."),
            ({"calls": [("append", "z")]}, ValueError, "names are a to f"),
            ({"calls": [("free", "a")]}, ValueError, "there is no sequence a"),
            ({"calls": [("append", "a"), ("fork", "a", "a")]}, ValueError, "there is a sequence a already"),
            ({"calls": [("append", "a")] * 201}, ValueError, "there are 201 calls: give 200 at most"),
        ],
    )
    def test_what_is_not_possible_is_refused(self, arguments, error, message):
        with pytest.raises(error, match=message):
            PageTable(**arguments)
