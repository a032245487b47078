"""The wording of the judge's messages: on which rung an answer is wrong and how, and how sure a known mistake is."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from course_utils.checks.judge.comparison import Comparison
from course_utils.checks.judge.exercise import Mistake
from course_utils.checks.judge.overflow import Overflow
from course_utils.checks.judge.verdict import is_mask
from course_utils.checks.kernel.evidence import BAD_RESULT, IN_ITS_CELL
from course_utils.checks.kernel.ladder import Rung

NOT_WRITTEN = "Not written yet."
SAME_RESULTS = "Your results match this mistake, though another could give the same numbers."
SAME_RESULTS_OF_TWO = "Your results match these two mistakes, though others could give the same numbers."
SECOND = (
    "There is a second mistake: exp overflows where the numbers are large, or gives 0 for a whole row, as on “{rung}”. "
    "Before exp, subtract from each row the largest number that the row uses."
)

# The errors of an answer that has computed nothing, so that a hint on its numbers leads astray.
NOT_COMPUTED = ("NameError", "UnboundLocalError", "AttributeError", "ImportError", "ModuleNotFoundError")
ADVICE = (
    (r"unreadable: an? (generator|map|zip|filter) is not a number",
     "Return a list: square brackets in place of the round ones, or list(…) around it."),
    (r"unsupported operand type\(s\) for \^", "In Python a power is **."),
    (r"name '(true|false)' is not defined", r"Python writes True and False, with a capital letter."),
    (r"name 'null' is not defined", "Python writes None."),
    (r"name '(NaN|nan)' is not defined", "It is math.nan or np.nan."),
    (r"name '(Infinity|Inf|inf)' is not defined", "It is math.inf or np.inf."),
    (r"name '(exp|log|sqrt|tanh|pi)' is not defined", r"For a number it is math.\1, for an array np.\1."),
    (rf"name '(\w+)' is not defined[^,]*, at line \d+{IN_ITS_CELL}: \1 ==", "To set a value write one =, not two."),
    (rf"name '(\w+)' is not defined[^,]*, at line \d+{IN_ITS_CELL}: \1 ?<-", "To set a value write = and not <-."),
    (r"arrays can be converted to Python scalars.*math\.(\w+)\(", r"math.\1 takes one number, np.\1 an array."),
    (r"must be real number, not list.*math\.(\w+)\(", r"math.\1 takes one number: call it for each entry."),
    (r"'float' object has no attribute '(\w+)'",
     r"It is a single number, which has no \1. The functions of math give one number, those of NumPy an array."),
    (r"unexpected keyword argument 'dim'", "NumPy calls it axis."),
    (r"unexpected keyword argument 'keepdim'", "NumPy calls it keepdims."),
    (r"TypeError: \S*\.\S*\(\) takes \d+ positional arguments? but \d+ (was|were) given",
     "Is self missing as the first parameter?"),
)  # fmt: skip
PRODUCTS = (  # what NumPy and PyTorch say of A @ B with shapes that do not fit
    (r"matmul: Input operand 1 has a mismatch.*\(size (\d+) is different from (\d+)\)",
     r"A @ B needs as many numbers in each row of A, here \2, as B has rows, here \1."),
    (r"shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)",
     r"A @ B needs as many numbers in each row of A, here \1, as B has rows, here \2."),
)  # fmt: skip
PARAMETERS = "Leave the parameters in its first line as the exercise gives them."

# An error at no line of the answer: the call of the check itself failed.
ABOUT_PARAMETERS = re.compile(
    r"TypeError: \w+\(\) (takes (from )?\d+ .*positional arguments? but \d+ (was|were) given"
    r"|missing \d+ required positional arguments?: [^:]*|got an unexpected keyword argument '\w+')"
)


def describe_call(name: str, line: int, reason: str) -> str:
    """Describe a forbidden call; the line of its cell is 0 where it is unknown."""
    caller = f"Line {line} of its cell" if line else "The answer"
    return f"{caller} calls {name}, which is not allowed here: {reason}."


def describe_mistake(comparison: Comparison, mistake: Mistake, overflow: Overflow | None = None) -> str:
    """Return the message of a recognised mistake, and what it rests on unless it ends with a question."""
    if overflow:
        return f"{mistake.message} {describe_overflow(comparison, overflow)} {SAME_RESULTS_OF_TWO}"
    return mistake.message if mistake.message.endswith("?") else f"{mistake.message} {SAME_RESULTS}"


def describe_overflow(comparison: Comparison, overflow: Overflow) -> str:
    """Return the message for an overflow that comes on top of another mistake."""
    return SECOND.format(rung=comparison.rungs[overflow.rungs[0]].name)


def describe_hidden_failure(comparison: Comparison) -> str:
    """Describe the first failure on hidden inputs without revealing them."""
    first = comparison.first_wrong
    rung = comparison.rungs[first]
    kind = (comparison.outcomes[first].error or BAD_RESULT).partition(":")[0]  # the text may hold the input
    error = "" if kind == BAD_RESULT else f"Here it raised {kind}. "
    return f"Wrong on hidden inputs (“{rung.name}”): the answer must be right for any input. {error}{rung.hint}"


def describe_error(rung: str, error: str, hint: str) -> str:
    """Describe an error on a rung; "it raised" is left out for a result that the check could not read."""
    kind, _, text = error.partition(": ")
    sentence = text or "the result cannot be read" if kind == BAD_RESULT else f"it raised {error}"
    advice = advise_on(error) or " ".join(filter(None, (_first_match(PRODUCTS, error), hint)))
    return f"On “{rung}” {with_full_stop(sentence)} {advice}"


def advise_on(error: str) -> str:
    """Return what to do about an error that beginners make in Python itself; "" for others."""
    return PARAMETERS if is_about_parameters(error) else _first_match(ADVICE, error)


def _first_match(rules: Iterable[tuple[str, str]], error: str) -> str:
    """Return the text of the first rule whose pattern is found in an error, with its groups filled in, or ""."""
    found = ((re.search(pattern, error), text) for pattern, text in rules)
    return next((match.expand(text) for match, text in found if match), "")


def is_about_parameters(error: str) -> bool:
    """Return whether an error says that the check calls a function with other arguments than it takes."""
    return ABOUT_PARAMETERS.fullmatch(error) is not None


def hint_on(error: str, rung: Rung) -> str:
    """Return the hint of a rung as far as it helps with an error: none where no number was computed at all."""
    if error.startswith(NOT_COMPUTED) or (error.startswith("TypeError") and IN_ITS_CELL in error):
        return ""  # a TypeError that comes from no line of the answer is about its parameters
    return rung.shape_hint if error.startswith(BAD_RESULT) else rung.hint


def describe_failure(comparison: Comparison, place: int) -> str:
    """Describe the first difference between an outcome and the right one."""
    rung = comparison.rungs[place]
    outcome = comparison.outcomes[place]
    right = comparison.right[place]
    by_hand = comparison.ladder.by_hand

    # An error, which an entry that cannot be read gives as well.
    if outcome.error and by_hand:
        text = outcome.error.partition(": ")[2] or outcome.error
        return with_full_stop(text if text.startswith(rung.name) else f"{rung.name}: {text}")
    if outcome.error:
        return describe_error(rung.name, outcome.error, hint_on(outcome.error, rung))

    # The first part that is missing, has another shape or another number. A stored notebook lists the parts in another
    # order, so they are taken in that of the ladder.
    returns = comparison.ladder.returns
    for part in sorted(right.values, key=lambda name: returns.index(name) if name in returns else len(returns)):
        expected = right.values[part]
        actual = outcome.values.get(part)
        if actual is None:
            return f"On “{rung.name}” there is no {part}."
        if actual.shape != expected.shape:
            where = "" if by_hand else f"On “{rung.name}” "
            return f"{where}{part} has shape {actual.shape}, expected {expected.shape}. {rung.hint}"
        tolerance = comparison.tolerances[place].of(part)
        pairs = [*zip(actual.entries, expected.entries, strict=True)]
        if wrong := [i for i, pair in enumerate(pairs) if not tolerance.near(*pair)]:
            # The first, but of hand-worked decimals the first that is clearly off, since others may be rounded.
            if by_hand and any(each != round(each) for each in expected.entries):
                off = {i: abs(pairs[i][0] - pairs[i][1]) for i in wrong}
                most = max(off.values())  # not a number where infinities are subtracted: then none is clearly off
                wrong = [i for i in wrong if off[i] >= most / 2] or wrong
            return _describe_difference(comparison, place, part, wrong[0])
    return f"On “{rung.name}” the result differs."


def _describe_difference(comparison: Comparison, place: int, part: str, i: int) -> str:
    """Describe that the entry `i` of a part, counted in row-major order, is not the expected number."""
    rung = comparison.rungs[place]
    right = comparison.right[place].values[part]
    expected = right.entries[i]
    actual = comparison.outcomes[place].values[part].entries[i]

    # A number by hand is not given away, and a measure means nothing to the learner.
    if comparison.ladder.by_hand:
        index = f"[{i}]" if right.shape else ""
        ladder = comparison.ladder
        return f"{part}{index} is not right. {ladder.advice_on.get(part, ladder.advice)}"
    if part == "measure":
        return rung.hint

    # Both numbers, with so many digits that they differ.
    texts = f"{actual:.5g}", f"{expected:.5g}"
    if is_mask(part, (actual, expected)):
        texts = str(bool(actual)), str(bool(expected))
    if texts[0] == texts[1]:
        texts = f"{actual:.8g}", f"{expected:.8g}"
    if part in comparison.tolerances[place].parts:  # the result is random
        texts = texts[0], f"about {expected:.3g}"
    index = f"[{', '.join(map(str, np.unravel_index(i, right.shape)))}]" if right.shape else ""
    return f"On “{rung.name}” {part}{index} is {texts[0]}, expected {texts[1]}. {rung.why}"  # the shape is right


def with_full_stop(sentence: str) -> str:
    """Return a sentence with a full stop if it has no end of its own."""
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."
