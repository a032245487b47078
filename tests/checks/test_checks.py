"""The checks: every right answer passes, every wrong one fails, and known mistakes are named."""

import itertools
import linecache
import math
import sys
import textwrap
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from variants import RIGHT, SLOW, WRONG, day1

from course_utils.attention import lists
from course_utils.checks import NotYet, checks_for
from course_utils.checks.examination import examine
from course_utils.checks.judge.exercise import Exercise, Mistake
from course_utils.checks.judge.exercise_tables import all_exercises, days_with_exercises
from course_utils.checks.judge.judge import judge_of
from course_utils.checks.judge.message import CheckMessage
from course_utils.checks.judge.rungs import evidence_for, rungs_of
from course_utils.checks.judge.verdict import JOINT, Tolerance, close
from course_utils.checks.judge.wording import describe_error
from course_utils.checks.kernel.evidence import all_ladders, draw_rungs, find_ladder, gather
from course_utils.checks.kernel.ladder import Ladder, Rung
from course_utils.checks.kernel.measures import changes
from course_utils.checks.kernel.outcome import MIME, as_json, as_line, evidence_of, read_evidence
from course_utils.checks.kernel.result_numbers import Numbers, as_numbers, boolean

for day in days_with_exercises():
    import_module(f"variants.day{day}")  # registers its answers
LONG = SLOW | {"online_softmax"}
MORE = pytest.mark.thorough("more answers to the exercises are judged, on visible and on hidden inputs")
EXERCISES = [
    pytest.param(day, grade_id, id=f"day{day}-{grade_id}")
    for day in days_with_exercises()
    for grade_id in all_exercises(day)
]


def parts_of(all_hidden):
    """(day, grade_id, hidden, which answers) of each exercise; of those that take long, two answers come first.

    all_hidden(day, name): whether all answers are judged on hidden inputs by default, too.
    """
    parts = []
    for day, name in (exercise.values for exercise in EXERCISES):
        called, slow = f"day{day}-{name}", name in LONG
        parts.append(pytest.param(day, name, False, slice(2 if slow else None), id=called))
        if slow:
            parts.append(pytest.param(day, name, False, slice(2, None), id=f"{called}-more", marks=MORE))
        marks = () if all_hidden(day, name) else MORE
        parts.append(pytest.param(day, name, True, slice(None), id=f"{called}-hidden", marks=marks))
    return pytest.mark.parametrize(("day", "grade_id", "hidden", "which"), parts)


ATTENTION = {"attention_lists", "attention_batched", "self_attention", "find_the_bug"}


def answered(day, grade_id, answer):
    if isinstance(answer, Mapping):
        return answer
    (name,) = find_ladder(day, grade_id).names
    return {name: answer}


def verdicts(registry, day, grade_id, hidden, which):
    """(an answer's name, the verdict) for answers in a registry."""
    for answer in registry.get((day, grade_id), [])[which]:
        evidence = evidence_for(day, grade_id, answered(day, grade_id, answer), hidden=hidden)
        yield called(answer), judge_of(day, grade_id).judge(evidence)


def called(answer):
    return "-".join(map(called, answer.values())) if isinstance(answer, Mapping) else answer.__name__


@pytest.mark.parametrize(("day", "grade_id"), EXERCISES)
def test_the_reference_passes(day, grade_id):
    assert judge_of(day, grade_id).judge(judge_of(day, grade_id).reference()).status == "passed"


@parts_of(lambda day, name: name not in LONG)
def test_right_answers_get_all_points(day, grade_id, hidden, which):
    found = list(verdicts(RIGHT, day, grade_id, hidden, which))
    assert [each for each in found if (each[-1].status, each[-1].share) != ("passed", 1.0)] == []


@pytest.mark.filterwarnings("ignore")
@parts_of(lambda day, name: day == 1)
def test_wrong_answers_get_none_and_a_message(day, grade_id, hidden, which):
    found = list(verdicts(WRONG, day, grade_id, hidden, which))
    assert [
        each
        for each in found
        if each[-1].status not in {"failed", "error", "forbidden"} or each[-1].share or not each[-1].message
    ] == []


@pytest.mark.parametrize(("day", "grade_id"), EXERCISES)
def test_known_mistakes_are_named_and_lose_their_points(day, grade_id):
    ladder = find_ladder(day, grade_id)
    for mistake, evidence in judge_of(day, grade_id).mistakes():
        verdict = judge_of(day, grade_id).judge(evidence)
        assert verdict.mistake == mistake.name, verdict
        assert verdict.share < 1 if ladder.by_hand or ladder.duel else verdict.share == 0, verdict


@pytest.mark.parametrize(
    ("day", "grade_id"),
    [
        pytest.param(*each.values, id=each.id, marks=MORE if each.values[1] in LONG else ())
        for each in EXERCISES
        if not find_ladder(*each.values).by_hand
    ],
)
def test_known_mistakes_show_on_hidden_inputs_too(day, grade_id):
    right = judge_of(day, grade_id).reference(hidden=True)
    for mistake, evidence in judge_of(day, grade_id).mistakes(hidden=True):
        assert not judge_of(day, grade_id).passes(evidence, right), mistake.name


def test_every_exercise_has_right_and_wrong_answers_and_mistakes():
    """One wrong answer is enough: the mutants of right ones, in `test_mutants.py`, are wrong answers too."""
    for day, grade_id in (exercise.values for exercise in EXERCISES):
        assert len(all_exercises(day)[grade_id].mistakes) >= 5
        if not find_ladder(day, grade_id).by_hand:
            assert len(RIGHT[day, grade_id]) >= 2 and WRONG[day, grade_id]


@pytest.mark.parametrize("day", days_with_exercises())
def test_ladders_and_answers_speak_of_the_same_exercises(day):
    assert list(all_ladders(day)) == list(all_exercises(day))
    for grade_id, exercise in all_exercises(day).items():
        assert tuple(exercise.reference) == find_ladder(day, grade_id).names


@pytest.mark.parametrize(("day", "grade_id"), EXERCISES)
def test_rungs_have_names_of_their_own_and_say_why(day, grade_id):
    if find_ladder(day, grade_id).by_hand:
        return
    rungs = rungs_of(day, grade_id)
    assert len({rung.name for rung in rungs}) == len(rungs)
    assert all(rung.hint.endswith(".") for rung in rungs)


@pytest.mark.parametrize("grade_id", sorted(ATTENTION))
def test_the_references_agree_with_the_library(grade_id):
    for hidden in (False, True):
        for rung, outcome in zip(
            draw_rungs(1, grade_id, hidden=hidden), judge_of(1, grade_id).reference(hidden).outcomes, strict=True
        ):
            if rung.measure:
                continue
            q, k, v = (torch.as_tensor(a, dtype=torch.float64) for a in rung.args[:3])
            if grade_id == "self_attention":
                q, k, v = (torch.as_tensor(rung.args[0] @ W) for W in rung.args[1:])
            expected = as_numbers(F.scaled_dot_product_attention(q, k, v))
            np.testing.assert_allclose(outcome.array("output"), expected.as_array(), atol=1e-7)


def test_hidden_inputs_are_others_and_always_the_same():
    visible, hidden, again = (draw_rungs(1, "scores", hidden=h) for h in (False, True, True))
    assert visible[3].args != hidden[3].args
    assert hidden[3].args == again[3].args


def test_a_table_of_the_visible_answers_fails_on_hidden_inputs():
    table = {
        str(rung.args): outcome
        for rung, outcome in zip(draw_rungs(1, "scores"), judge_of(1, "scores").reference().outcomes, strict=True)
    }

    def look_up(Q, K):
        return table[str((Q, K))].array("scores")

    assert judge_of(1, "scores").judge(gather(1, "scores", {"scores": look_up})).status == "passed"
    hidden = judge_of(1, "scores").judge(gather(1, "scores", {"scores": look_up}, hidden=True))
    assert hidden.status == "failed"
    assert "hidden" in hidden.message


# By hand ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grade_id", "entries", "share"),
    [
        ("by_hand_three", {"score_33": 3, "weights_3": [0.178, 0.088, 0.734]}, 1.0),
        ("by_hand_three", {"score_33": 3.0, "weights_3": (0.178, 0.0879, 0.7337)}, 1.0),
        ("by_hand_three", {"score_33": np.float64(3), "weights_3": np.array([0.17837, 0.08795, 0.73368])}, 1.0),
        ("by_hand_three", {"score_33": 1, "weights_3": [0.178, 0.088, 0.734]}, 0.5),
        ("by_hand_three", {"score_33": 3, "weights_3": [0.18, 0.09, 0.73]}, 0.5),
        ("by_hand_three", {"score_33": 3, "weights_3": [0.178, 0.734]}, 0.5),
        ("by_hand_three", {"score_33": None, "weights_3": None}, 0.0),
        ("by_hand_three", {"score_33": "3", "weights_3": ["0.178", "0.088", "0.734"]}, 0.0),
        ("by_hand_two", {"order_output": [1.53, 1.47], "delayed_output": [1.42, 1.58]}, 1.0),
        ("by_hand_two", {"order_output": [1.5265, 1.4735], "delayed_output": [1.4211, 1.5789]}, 1.0),
        ("by_hand_two", {"order_output": [1.52, 1.48], "delayed_output": [1.44, 1.56]}, 0.0),
        ("by_hand_two", {"order_output": [1.54, 1.46], "delayed_output": [1.42, 1.58]}, 0.5),
        ("by_hand_two", {"order_output": [1.42, 1.58], "delayed_output": [1.53, 1.47]}, 0.0),
    ],
)
def test_each_entry_worked_by_hand_earns_its_share(grade_id, entries, share):
    assert judge_of(1, grade_id).judge(gather(1, grade_id, entries)).share == share


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"score_33": "3", "weights_3": [0.178, 0.088, 0.734]}, "score_33: the text '3' is not a number"),
        (
            {"score_33": 2, "weights_3": [0.178, 0.088, 0.734]},
            "score_33 is not right. It is the dot product of (1, 2) and (1, 1); nothing is scaled yet.",
        ),
        ({"score_33": 3, "weights_3": None}, "weights_3 is not filled in."),
        ({"score_33": 3, "weights_3": [0.178, 0.088]}, "weights_3 has shape (2,), expected (3,)."),
        ({"score_33": 3, "weights_3": [0.18, 0.09, 0.73]}, "rounded to 2 decimals: give 3."),
    ],
    ids=["a text", "a wrong score", "not filled in", "too short", "two decimals"],
)
def test_an_entry_worked_by_hand_is_spoken_of_without_python(entries, message):
    verdict = judge_of(1, "by_hand_three").judge(gather(1, "by_hand_three", entries))
    assert message in verdict.message
    assert "raised" not in verdict.message


NONE = [0, 0]


@pytest.mark.parametrize(
    "matrix",
    [
        [NONE, (-1, 4), NONE, NONE],
        np.array([[1, -4], [0, 0], [0, 0], [-1, 4]]),
        torch.tensor([[5.0, -14], [0, 0], [5, -14.0], [0, 0]]),
        [NONE, [-100, 300], [-100, 5], NONE],
        [[7, -7], [2, 2], [5, -5], NONE],
        [NONE, [-0.98, 3.92], NONE, NONE],
    ],
    ids=["the shortest", "by the row of both", "others pushed away", "large", "across", "just enough"],
)
def test_every_matrix_with_which_arrived_alone_finds_parcel_is_right(matrix):
    verdict = judge_of(1, "find_the_parcel").judge(gather(1, "find_the_parcel", {"my_W_K": matrix}))
    assert (verdict.status, verdict.share) == ("passed", 1.0)


@pytest.mark.parametrize(
    ("matrix", "name", "said"),
    [
        ([[0, -1], [-1, 0], [1, 1], [1, 1]], "found itself", "0.248 to “the”, 0.248 to “parcel”, 0.503 to “arrived”"),
        ([[1, 0], [0, 2], NONE, NONE], "parcel, not far enough", "0.576 to “parcel”"),
        ([[1, 0], [0, 2], NONE, [0, 5]], "the lifted too", "scores 6 with “the”, 7 with “parcel”, 0 with “arrived”"),
        ([[1, 0], [0, 4], NONE, NONE], "the finds parcel too", "0.248 to “parcel”"),
        ([NONE, [2, 2], NONE, NONE], "the finds parcel too", "“the” scores 0 with “the”, 2 with “parcel”, 0"),
        ([[2, 2], NONE, NONE, NONE], "found the", "0.894 to “the”"),
        ([[2, 2], [2, 2], NONE, NONE], "the and parcel alike", "row 1 only into that of “parcel”"),
        ([[1, -1], [2, -2], NONE, NONE], "all alike", "the same score"),
        (np.array([NONE, [2, 2], NONE, NONE]).T, "transposed", "W_K is 2 × 4. It has to be 4 × 2"),
        ([NONE, [2, 2], NONE], "keys in place of W_K", "W_K is 3 × 2"),
        ([[NONE, [2, 2], NONE, NONE]], "another shape", "W_K is 1 × 4 × 2"),
        (2.0, "another shape", "W_K is one number"),
        ([NONE, [math.nan, 2], NONE, NONE], "no finite numbers", "not finite"),
        ([NONE, [math.inf, math.inf], NONE, NONE], "no finite numbers", "not finite"),
        ([NONE, [1e308, 1e308], NONE, NONE], "scores without bounds", "so large"),
        ([NONE, ["2", "2"], NONE, NONE], None, "is not a number"),
        ([[0], [2, 2]], None, "is not a number"),
        (None, None, "Not written yet."),
    ],
)
def test_a_matrix_with_which_arrived_or_the_finds_another_is_told_whom(matrix, name, said):
    verdict = judge_of(1, "find_the_parcel").judge(gather(1, "find_the_parcel", {"my_W_K": matrix}))
    assert (verdict.share, verdict.mistake) == (0.0, name)
    assert said in verdict.message


def test_a_wrong_scale_of_lists_is_told_with_their_lengths():
    def answer(Q, K, V):
        return lists.attention(Q, [[x / math.sqrt(len(K) / len(K[0])) for x in key] for key in K], V)

    verdict = judge_of(1, "attention_lists").judge(
        gather(1, "attention_lists", answered(1, "attention_lists", {"attention_lists": answer}))
    )
    assert "√len(K)" in verdict.message and "√len(Q[0])" in verdict.message and ".shape" not in verdict.message


@pytest.mark.parametrize("numbers", [[], ["nan"] * 8, ["ok"] * 8, [10**400] * 8, None, [1.0] * 9, {"a": 1}])
def test_made_up_evidence_of_a_matrix_earns_nothing(numbers):
    made_up = {"rung": "my_W_K", "values": {"my_W_K": {"shape": [4, 2], "numbers": numbers}}}
    assert judge_of(1, "find_the_parcel").judge(read_evidence({"hidden": False, "outcomes": [made_up]})).share == 0
    assert (
        judge_of(1, "find_the_parcel").judge(read_evidence({"outcomes": [{"rung": "my_W_K", "values": numbers}]})).share
        == 0
    )


def test_the_bug_as_it_stands_is_not_given_away():
    (mistake,) = (m for m in all_exercises(1)["find_the_bug"].mistakes if m.name == "softmax over queries")
    verdict = judge_of(1, "find_the_bug").judge(gather(1, "find_the_bug", answered(1, "find_the_bug", mistake.answer)))
    assert "axis" not in verdict.message


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        ([0.179, 0.088, 0.734], "nearly right"),
        ([0.178, 0.088, 0.736], "nearly right"),
        ([0.2, 0.25, 0.55], "the largest too small"),
    ],
)
def test_a_number_that_is_nearer_to_right_than_to_a_known_mistake_is_not_called_one(weights, what):
    verdict = judge_of(1, "by_hand_three").judge(gather(1, "by_hand_three", {"score_33": 3, "weights_3": weights}))
    assert (verdict.share, verdict.mistake) == (0.5, f"weights_3: {what}")


def test_of_one_number_that_is_clearly_off_the_place_is_told_and_no_other():
    """0.179 for 0.178 is not right either, to three decimals, but nearly."""
    entries = {"score_33": 3, "weights_3": [0.179, 0.089, 0.4]}
    verdict = judge_of(1, "by_hand_three").judge(gather(1, "by_hand_three", entries))
    assert verdict.mistake == "weights_3: one number wrong"
    assert "one number that is clearly off; the others are right, or nearly so." in verdict.message
    assert "weights_3[2] is not right." in verdict.message and "weights_3[0]" not in verdict.message


def test_an_answer_that_calls_an_unwritten_one_is_told_its_name():
    cell = """
        def scores(Q, K):
            raise NotImplementedError("your code goes here")
        def attention_lists(Q, K, V):
            return scores(Q, K), None
    """
    namespace = {}
    exec(compile(textwrap.dedent(cell), "/tmp/ipykernel_7/7.py", "exec"), namespace)
    evidence = gather(1, "attention_lists", namespace)
    verdict = judge_of(1, "attention_lists").judge(evidence)
    assert verdict.status == "error" and "scores is not written yet" in verdict.message
    verdict = judge_of(1, "scores").judge(gather(1, "scores", namespace))
    assert (verdict.status, verdict.message) == ("missing", "Not written yet.")


def test_pencil_rounding_of_a_known_mistake_is_still_recognised():
    rounded = gather(1, "by_hand_three", {"score_33": 3, "weights_3": [0.11, 0.04, 0.84]})
    assert judge_of(1, "by_hand_three").judge(rounded).mistake == "no scaling"


def test_a_known_mistake_is_recognised_while_another_entry_is_still_empty():
    entries = {"score_33": None, "weights_3": [0.1142, 0.042, 0.8438]}
    verdict = judge_of(1, "by_hand_three").judge(gather(1, "by_hand_three", entries))
    assert (verdict.mistake, verdict.share) == ("no scaling", 0.0)
    empty = {"score_33": 3, "weights_3": None}
    assert judge_of(1, "by_hand_three").judge(gather(1, "by_hand_three", empty)).mistake is None


def test_known_mistakes_in_two_entries_by_hand_are_both_recognised():
    entries = dict(judge_of(4, "layer_by_hand").exercise.reference)
    entries |= {"parameters_in_all": 48_000, "scores_of_a_text": 330}
    verdict = judge_of(4, "layer_by_hand").judge(gather(4, "layer_by_hand", entries))
    assert verdict.mistake == f"W_O left out{JOINT}scores of a causal triangle"


def test_an_error_that_is_no_arithmetic_is_no_known_mistake():
    def softmax_row(row):
        if max(row) > 700:
            return stable(row)  # noqa: F821
        e = [math.exp(x) for x in row]
        return [x / sum(e) for x in e]

    verdict = judge_of(1, "softmax_row").judge(gather(1, "softmax_row", {"softmax_row": softmax_row}))
    assert verdict.mistake == "raises NameError: name 'stable' is not defined"
    assert "NameError" in verdict.message


def test_an_error_on_hidden_inputs_does_not_tell_them():
    def scores(Q, K):
        raise ValueError(f"{Q} {K}")

    message = judge_of(1, "scores").judge(gather(1, "scores", {"scores": scores}, hidden=True)).message
    assert message.endswith("it raised ValueError.")


def test_an_error_on_some_hidden_inputs_is_told_by_its_kind():
    def scores(Q, K):
        if len(Q) > 2:
            raise KeyError(f"{Q}")
        return np.array(Q) @ np.array(K).T

    message = judge_of(1, "scores").judge(gather(1, "scores", {"scores": scores}, hidden=True)).message
    assert "the answer must be right for any input. Here it raised KeyError. " in message


# Ladders of other kinds ---------------------------------------------------------------------------------------------


INVENTED = itertools.count(1000)  # numbers of days; what is found out of each is remembered


@pytest.fixture
def invented(monkeypatch):
    """Makes a day, numbered as no other, with one exercise whose answer is called `answer`; returns the number."""

    def make(ladder, exercise):
        day = next(INVENTED)
        for part, name, value in (("given.ladders", "LADDERS", ladder), ("exercises", "EXERCISES", exercise)):
            room = "days" if name == "LADDERS" else "answers"
            module = ModuleType(f"course_utils.{room}.day{day}.{part}")
            setattr(module, name, {"invented": value})
            for package in (f"course_utils.{room}.day{day}", f"course_utils.{room}.day{day}.given"):
                monkeypatch.setitem(sys.modules, package, ModuleType(package))
            monkeypatch.setitem(sys.modules, module.__name__, module)
        return day

    return make


def judged(day, answer):
    return judge_of(day, "invented").judge(gather(day, "invented", {"answer": answer}))


def test_a_rung_may_be_less_strict_in_one_part(invented):
    rungs = [
        Rung("many draws", (400,), "Draw them all.", tolerance={"mean": (0.0, 0.1)}),
        Rung("no draws", (0,), "Nothing to draw."),
    ]
    ladder = Ladder(("answer",), ("mean", "count"), lambda rng: rungs)
    twice = Mistake("twice", lambda n: (2.0 * (n > 0), n), "This is twice the mean.")
    day = invented(ladder, Exercise(1, {"answer": lambda n: (float(n > 0), n)}, (twice,)))
    assert judged(day, lambda n: (1.05 if n else 0.0, n)).status == "passed"
    assert judged(day, lambda n: (1.05, n)).status == "failed"
    assert "mean is 1.2, expected about 1." in judged(day, lambda n: (1.2 * (n > 0), n)).message
    assert "count is 400.01, expected 400." in judged(day, lambda n: (float(n > 0), n + 0.01 * (n > 0))).message
    assert judged(day, lambda n: (1.95 * (n > 0), n)).mistake == "twice"


def test_a_measure_may_have_parts_and_a_failure_names_the_place(invented):
    def slopes(function, x):
        return {"value": function(x), "slope": [function(x + 1) - function(x), function(x + 2) - function(x)]}

    ladder = Ladder(("answer",), ("value",), lambda rng: [Rung("at 3", (3.0,), "Once more.", slopes)])
    day = invented(ladder, Exercise(1, {"answer": lambda x: 2 * x}, ()))
    assert judged(day, lambda x: 2 * x).status == "passed"
    assert judged(day, lambda x: x * x - x).message == "On “at 3” slope[0] is 6, expected 2. Once more."


def test_of_several_functions_each_has_rungs_of_its_own(invented):
    rungs = [Rung("the half of 6", (6,), "Halve."), Rung("twice 6", (6,), "Double.", of="double")]
    ladder = Ladder(("answer", "double"), ("number",), lambda rng: rungs)
    right = {"answer": lambda n: n / 2, "double": lambda n: 2 * n}
    thrice = Mistake("thrice", right | {"double": lambda n: 3 * n}, "That is three times.")
    day = invented(ladder, Exercise(1, right, (thrice,)))

    def judged(**given):
        return judge_of(day, "invented").judge(gather(day, "invented", right | given))

    assert judged().status == "passed"
    assert judged(double=lambda n: 2 + n).message == "On “twice 6” number is 8, expected 12. Double."
    assert judged(double=lambda n: 3 * n).mistake == "thrice"
    assert (
        "double is not defined"
        in judge_of(day, "invented").judge(gather(day, "invented", {"answer": right["answer"]})).message
    )


def test_a_result_that_is_no_array_can_be_converted(invented):
    def pair(result):
        if result is None:
            return [-1, -1]
        if not isinstance(result, tuple):
            raise TypeError("return None or a pair")
        return result

    ladder = Ladder(
        ("answer",), ("pair",), lambda rng: [Rung("even", (2,), "Look."), Rung("odd", (3,), "Look.")], convert=pair
    )
    day = invented(ladder, Exercise(1, {"answer": lambda n: None if n % 2 else (0, n)}, ()))
    assert judged(day, lambda n: None if n % 2 else (0, n)).status == "passed"
    assert judged(day, lambda n: None).status == "failed"
    assert "return None or a pair" in judged(day, lambda n: "x" if n % 2 else (0, n)).message


@pytest.mark.parametrize(
    "mask", [[[True]], np.array([[True]]), torch.tensor([[True]]), [torch.tensor([True])]], ids=type
)
def test_a_boolean_mask_is_taken_in_any_shape_it_comes(mask):
    assert boolean(mask) is mask


@pytest.mark.parametrize("mask", [[[1, 0]], np.ones(2), torch.ones(2), torch.arange(2), 1], ids=str)
def test_a_mask_of_numbers_is_refused(mask):
    kind = str(getattr(mask, "dtype", "numbers"))
    with pytest.raises(TypeError, match=f"made of {kind}, .* return a boolean mask"):
        boolean(mask)


def test_only_the_arrays_among_the_arguments_become_tensors(invented):
    args = (np.ones(2, np.float16), np.array([True]), 3, None, math.sin)
    ladder = Ladder(("answer",), ("kinds",), lambda rng: [Rung("all kinds", args, "Look.")], tensors=True)
    seen = []
    day = invented(ladder, Exercise(1, {"answer": lambda *given: 0.0}, ()))
    judged(day, lambda *given: seen.extend(given) or 0.0)
    assert [given.dtype for given in seen[:2]] == [torch.float16, torch.bool]
    assert seen[2:] == [3, None, math.sin]


def test_a_generator_starts_from_the_same_state_for_everyone(invented):
    rung = Rung("three draws", (np.random.default_rng(5),), "Draw.")
    ladder = Ladder(("answer",), ("draws",), lambda rng: [rung])
    day = invented(ladder, Exercise(1, {"answer": lambda rng: rng.normal(size=3)}, ()))
    assert judged(day, lambda rng: [rng.normal() for _ in range(3)]).status == "passed"
    assert judged(day, lambda rng: rng.normal(size=3)).status == "passed"
    assert judged(day, lambda rng: np.random.default_rng(6).normal(size=3)).status == "failed"


def test_numbers_that_differ_far_back_are_told_with_more_digits(invented):
    ladder = Ladder(("answer",), ("value",), lambda rng: [Rung("a third", (3.0,), "Divide.")])
    day = invented(ladder, Exercise(1, {"answer": lambda x: 1 / x}, (), rtol=0.0, atol=1e-7))
    assert "value is 0.333333, expected 0.33333333." in judged(day, lambda x: 0.333333).message


@pytest.mark.parametrize(
    ("function", "args", "changed"),
    [
        (lambda x: x - x.max(), (np.array([1.0, np.nan]),), 0.0),
        (lambda x: x.fill(0), (np.array([1.0, np.nan]),), 1.0),
        (lambda x, m: x.masked_fill(~m, 0), (torch.ones(2), torch.tensor([True, False])), 0.0),
        (lambda x, m: m.logical_not_(), (torch.ones(2), torch.tensor([True, False])), 2.0),
        (lambda row, n: row.sort(), ([2, 1], 3), 1.0),
        (lambda rows: rows[0].append(1), ([[2], [1]],), 1.0),
        (sorted, ([2, 1],), 0.0),
    ],
)
def test_a_function_that_writes_into_what_it_is_given_is_seen(function, args, changed):
    assert changes(function, *args) == changed


def test_an_entry_that_is_not_right_gets_the_ladders_advice(invented):
    day = invented(Ladder(("answer",), by_hand=True, advice="Add again."), Exercise(1, {"answer": 7}, ()))
    assert judged(day, 8).message == "answer is a little off. answer is not right. Add again."


# Evidence that is not what it should be -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "returned",
    [None, "text", {"a": 1}, [[1.0], [2.0, 3.0]], (x for x in range(3)), map(float, "123"), [1j], np.zeros(20_000)],
)
def test_a_result_that_is_no_array_fails_with_a_reason(returned):
    verdict = judge_of(1, "softmax_row").judge(gather(1, "softmax_row", {"softmax_row": lambda row: returned}))
    assert verdict.status == "failed" and not verdict.share
    assert "returned None" in verdict.message or "is not a number or" in verdict.message or "larger" in verdict.message
    assert "raised" not in verdict.message


@pytest.mark.parametrize(
    "evidence",
    [
        {},
        {"outcomes": []},
        {"outcomes": [1, None]},
        {"outcomes": [{"rung": "two entries", "values": 7}]},
        {"outcomes": [{"rung": "two entries", "values": {"weights": {"shape": [2], "numbers": ["a", None]}}}]},
    ],
)
def test_forged_or_broken_evidence_fails_closed(evidence):
    assert judge_of(1, "softmax_row").judge(read_evidence(evidence)).share == 0


def test_evidence_is_stored_as_a_line():
    evidence = gather(1, "softmax_row", all_exercises(1)["softmax_row"].reference)
    line = as_line(evidence)
    assert "\n" not in line
    assert evidence_of({"data": {MIME: line}}) == evidence
    for other in (as_json(evidence), "no JSON", "[1]", "[" * 100_000, 3, None, ["a", "list"]):
        assert evidence_of({"data": {MIME: other}}) is None
    assert evidence_of({"output_type": "stream", "text": line}) is None


def test_evidence_of_another_exercise_earns_nothing():
    assert judge_of(1, "scores").judge(judge_of(1, "softmax_row").reference()).share == 0


# The check cell -----------------------------------------------------------------------------------------------------


def notebook(source):
    """A namespace in which a notebook's cells have run."""
    namespace = {"math": math, "np": np, "torch": torch}
    exec(textwrap.dedent(source), namespace)
    return namespace


def test_an_answer_not_written_yet_is_missing():
    def softmax_row(row):
        raise NotImplementedError("your code goes here")

    _, verdict = examine(1, "softmax_row", {"softmax_row": softmax_row})
    assert verdict.status == "missing"


@pytest.mark.parametrize("text", ["\"softmax_lastdim\" not implemented for 'Bool'", "Could not run 'aten::normal_'"])
def test_an_error_of_pytorch_that_bears_the_stubs_name_is_no_missing_answer(text):
    def softmax_row(row):
        raise NotImplementedError(text)

    _, verdict = examine(1, "softmax_row", {"softmax_row": softmax_row})
    assert verdict.status == "error" and text in verdict.message


def test_entries_that_are_texts_were_not_raised_by_anybody():
    _, verdict = examine(1, "by_hand_three", {"score_33": "2", "weights_3": "?"})
    assert verdict.message == "score_33: the text '2' is not a number or a rectangular array of numbers."


def test_an_earlier_slip_costs_a_later_exercise_nothing():
    own = notebook("""
        def softmax_row(row):
            raise NotImplementedError
        def scores(Q, K):
            return "wrong"
        def scale_scores(S, d_k):
            return [[s / d_k for s in row] for row in S]
        def attention_lists(Q, K, V):
            weights = [softmax_row(row) for row in scale_scores(scores(Q, K), len(K[0]))]
            return [[sum(w * v[c] for w, v in zip(row, V)) for c in range(len(V[0]))] for row in weights], weights
    """)
    before = dict(own)
    assert examine(1, "attention_lists", own)[1].status == "passed"
    assert own == before


def test_nothing_is_lent_to_an_exercise_that_does_not_build_on_it():
    own = notebook("""
        def attention_batched(q, k, v):
            raise NotImplementedError
        def broken_attention(q, k, v):
            return attention_batched(q, k, v)
    """)
    assert examine(1, "find_the_bug", own)[1].share == 0


def test_the_check_cell_shows_the_ladder_or_raises_with_advice(capsys):
    check = checks_for(day=1)

    def softmax_row(row):
        return [math.exp(x) / sum(map(math.exp, row)) for x in row]

    globals()["softmax_row"] = softmax_row
    try:
        with pytest.raises(NotYet) as caught:
            check("softmax_row")
        assert "✗ large entries" in str(caught.value)
        assert "✓ two entries" in str(caught.value)
        assert "overflows" in str(caught.value)
        assert caught.value._render_traceback_() == str(caught.value).splitlines()
        caught.value.drawn = "softmax_row"  # a card says it
        assert caught.value._render_traceback_() == ["softmax_row has not passed yet; the card above says why."]
        globals()["softmax_row"] = day1.softmax_with_a_loop
        check("softmax_row")
    finally:
        del globals()["softmax_row"]


def test_a_name_that_is_not_defined_says_what_to_do():
    _, verdict = examine(1, "softmax_row", {})
    assert "softmax_row is not defined" in verdict.message


def test_a_name_that_no_cell_defines_is_known_as_that_on_visible_inputs_only():
    def scores(Q, K):
        return Qs if len(Q) > 1 else [[sum(a * b for a, b in zip(Q[0], row, strict=True)) for row in K]]  # noqa: F821

    rungs = judge_of(1, "scores").rungs()
    assert {len(rung.args[0]) > 1 for rung in rungs} == {False, True}, "some rungs hold, others fail"
    for hidden in (False, True):
        verdict = judge_of(1, "scores").judge(gather(1, "scores", {"scores": scores}, hidden=hidden))
        assert verdict.status != "passed" and verdict.unknown_name == (not hidden), hidden


def test_what_is_no_array_is_not_read_and_never_holds():
    sent = {"shape": [2], "numbers": [1.0, "-inf"]}
    wanted, tolerance = Numbers.read(sent), Tolerance(1e-6, 1e-6)
    assert wanted.as_json() == sent and close(wanted, wanted, tolerance) and not close(None, wanted, tolerance)
    shapes = [{"shape": shape, "numbers": [1, 2]} for shape in (None, 2, [-2], [True, 2], ["2"], [1], [3], [[2]])]
    entries = [
        {"shape": [2], "numbers": each}
        for each in (None, 3, "12", {"1": 1, "2": 2}, ["x", 2], [None, 2], [[1], 2], [1], [10**400, 2])
    ]
    large = {"shape": [10**9, 10**9], "numbers": [0.0] * 20_000}
    for given in (None, 3, {}, [], "2", {"shape": [2]}, {"numbers": [2]}, *shapes, *entries, large):
        assert Numbers.read(given) is None, given


def test_an_unknown_exercise_says_which_there_are():
    with pytest.raises(KeyError, match="softmax_row"):
        find_ladder(1, "sofmax")


def test_the_report_gives_the_points():
    evidence = gather(1, "by_hand_three", {"score_33": 3, "weights_3": [0.1, 0.2, 0.7]})
    text = str(CheckMessage(1, "by_hand_three", judge_of(1, "by_hand_three").judge(evidence)))
    assert "not yet, 1 of 2 points" in text


def test_the_diagnosis_comes_before_the_rungs_and_breaks_between_words():
    def softmax_row(row):
        return [math.exp(x) / sum(map(math.exp, row)) for x in row]

    verdict = judge_of(1, "softmax_row").judge(gather(1, "softmax_row", {"softmax_row": softmax_row}))
    points, diagnosis, rungs = str(CheckMessage(1, "softmax_row", verdict)).split("\n\n")
    assert points == "softmax_row: not yet, 0 of 2 points (10 of 15 steps passed)"
    assert diagnosis.split() == verdict.message.split()
    assert max(map(len, diagnosis.splitlines())) <= 88
    assert rungs.splitlines()[0] == "  ✓ one entry takes all the weight"


def test_an_error_comes_with_the_line_of_the_cell_it_arose_in():
    cell = "def scores(Q, K):\n    rows = len(Q)\n    return Qs\n"
    name = "ipykernel_7/1.py"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    own = {}
    exec(compile(cell, name, "exec"), own)
    verdict = judge_of(1, "scores").judge(gather(1, "scores", own))
    assert "NameError: name 'Qs' is not defined, at line 3 of your cell: return Qs" in verdict.message
    hidden = judge_of(1, "scores").judge(gather(1, "scores", own, hidden=True))
    assert hidden.message.endswith("it raised NameError.")


@pytest.mark.parametrize("make", [np.ones, torch.ones])
def test_a_product_of_matrices_that_do_not_fit_is_explained(make):
    with pytest.raises((ValueError, RuntimeError)) as raised:
        make((2, 3)) @ make((2, 3))
    message = describe_error("a step", f"{raised.type.__name__}: {raised.value}", "Transpose K.")
    assert message.endswith("A @ B needs as many numbers in each row of A, here 3, as B has rows, here 2. Transpose K.")


def test_an_overflow_on_the_way_prints_no_warning(recwarn):
    def attention_batched(q, k, v):
        weights = np.exp(q @ np.swapaxes(k, -1, -2))
        return weights / weights.sum(-1, keepdims=True) @ v, weights

    judge_of(1, "attention_batched").judge(gather(1, "attention_batched", {"attention_batched": attention_batched}))
    assert not recwarn.list
