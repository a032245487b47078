"""Numbers in the prose of lessons: each stands in an output or a cell of its lesson, or here, with where it is from."""

import html
import math
import re

import nbformat
import numpy as np
import pytest

from course_utils.costs.roofline import MACHINES
from course_utils.course import ROOT, day_of, notebook_paths

FLOAT16 = float(np.finfo(np.float16).max)
CALCULATED = {  # what the text calculates itself, calculated again
    "65,504": FLOAT16,
    "2.028": math.exp(0.707),
    "3.028": 1 + math.exp(0.707),
    "5.056": 1 + 2 * math.exp(0.707),
    "989": MACHINES["NVIDIA H100 SXM"].flops_per_second / 1e12,
}
SOURCES = {  # what others measured or set, by day
    1: {"0.99": "a question for the slider: how cold must it be", "1.9": "a setting of the slider"},
    3: {
        "256": "tokens of the text that the record of the real model was made with",
    },
    4: {
        "10,000": "the base of RoPE in Su et al. 2021, section 3.2.2",
        "100,000": "the base of RoPE in SmolLM2: rope_theta of its config.json",
    },
    7: {
        "4096": "tokens: issue 16270 of vllm-ascend, 2026",
    },
    8: {
        "1,024": "rows of GPT-2's table of positions: n_positions of its config.json; tokens of the record of bases",
    },
}
WHOLE = r"\d{1,3}(?:,\d{3})+|\d+"
NUMBER = re.compile(rf"(?<![\d.])(?:(?:{WHOLE})(?:\.\d+)?(?:e[-+]?\d+)?|\.\d+)(?![\d,]*\d)")
UNIT = (
    r"%|[kMGT]i?B\b|[kMGT]B/s|bytes?\b|bits?\b|[mµn]?s\b|(?:milli|micro)?seconds?\b|minutes?\b|hours?\b|[MGT]?FLOPs?\b"
    r"|tokens?\b|parameters?\b"
)
CLAIM = re.compile(rf"(?<![\w.,^])((?:{WHOLE})?\.\d+|\d{{1,3}}(?:,\d{{3}})+|\d+(?= ?(?:{UNIT})))(?!\.?\d)( ?%)?")
LESSONS = [path for _, path in notebook_paths(ROOT / "notebooks")]
lessons = pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)


def claims(prose):
    """The decimals, percentages, numbers of four digits with a comma and numbers with a unit, as (number, is it %)."""
    plain = re.sub(r"\]\([^)]*\)", "]", prose)
    for written, plain_form in ((r"\\?,(?=\\%)", ""), (r"\\%| per cent", "%"), (r"\{,\}", ",")):
        plain = re.sub(written, plain_form, plain)
    return [(match[1], bool(match[2])) for match in CLAIM.finditer(plain)]


def value(number):
    return float(number.replace(",", ""))


def numbers(text):
    return {value(match) for match in NUMBER.findall(text.replace("_", ""))}


def holds(held, number, percent):
    """Whether one of the held numbers is this one, rounded to as many digits; 0.12 is 12 %, too."""
    half = 0.5 * 10.0 ** -len(number.partition(".")[2]) + 1e-9
    scales = (1, 100) if percent else (1,)
    return any(abs(each * scale - value(number)) <= half for each in held for scale in scales)


def visible_text(cell):
    """The texts of a code cell: its source, what it printed, its tables and the alt texts of its figures."""
    yield cell.source
    for output in cell.outputs:
        data = output.get("data", {})
        yield output.get("text", "") + data.get("text/plain", "") + data.get("text/markdown", "")
        yield html.unescape(re.sub(r"<[^>]*>", " ", data.get("text/html", "")))
        yield from (str(of_kind.get("alt", "")) for of_kind in output.get("metadata", {}).values())


def claimed_and_held(path):
    cells = nbformat.read(path, as_version=4).cells
    prose = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown").partition("\n## References\n")[0]
    prose = re.sub(r"\*\*Time\*\*: [^.]*\.", "", prose)  # test_lessons.py counts these minutes
    held = {
        number for cell in cells if cell.cell_type == "code" for text in visible_text(cell) for number in numbers(text)
    }
    return claims(prose), held


def unheld(path):
    claimed, held = claimed_and_held(path)
    return [number for number, percent in claimed if not holds(held, number, percent)]


@lessons
def test_a_number_in_the_prose_stands_in_the_lesson_or_has_a_source(path):
    listed = {*CALCULATED, *SOURCES.get(day_of(path.name), {})}
    assert [number for number in unheld(path) if number not in listed] == []


@lessons
def test_a_source_is_listed_only_for_a_number_that_needs_it(path):
    assert set(SOURCES.get(day_of(path.name), {})) <= set(unheld(path))


def test_a_calculation_is_listed_only_for_a_number_that_needs_it_and_gives_it():
    assert set(CALCULATED) <= {number for path in LESSONS for number in unheld(path)}
    assert [number for number, again in CALCULATED.items() if not holds({again}, number, False)] == []


@pytest.mark.parametrize(
    ("prose", "claimed"),
    [
        ("It has .48 of the weight.", [(".48", False)]),
        ("It is $1 / 3.718 = 0.269$, or 26.9 %.", [("3.718", False), ("0.269", False), ("26.9", True)]),
        (r"From 20 to 38 per cent, or $81.6\,\%$", [("38", True), ("81.6", True)]),
        (
            "10,000 rows take 9 ms and 16 MiB, in [part 2](a.ipynb#3.5)",
            [("10,000", False), ("9", False), ("16", False)],
        ),
        ("day 3 has 4 heads, $10^{12}$", []),
    ],
)
def test_what_counts_as_a_number_that_is_told(prose, claimed):
    assert claims(prose) == claimed


@pytest.mark.parametrize(
    ("text", "number", "percent", "held"),
    [
        ("0.4811", ".48", False, True),
        ("0.4811", ".49", False, False),
        ("1000 rows", "1,000", False, True),
        ("32_768", "32,768", False, True),
        ("0.12", "12", True, True),
        ("0.12", "12", False, False),
        ("0.12", "13", True, False),
        ("1.2e-05", "0.00001", False, True),
        ("16,384 keys", "384", False, False),
    ],
)
def test_a_number_is_held_when_it_rounds_to_what_is_told(text, number, percent, held):
    assert holds(numbers(text), number, percent) == held
